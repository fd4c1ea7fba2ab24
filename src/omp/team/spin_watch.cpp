// SPDX-License-Identifier: Apache-2.0
#include "omp/team/spin_watch.hpp"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <algorithm>

#include "os/os.hpp"

namespace amasia::omp {
namespace {

thread_local std::uint32_t own_place = 0;
thread_local int own_id = 0;

Dl_info object_of(const void* code) {
  Dl_info object{};
  (void)dladdr(code, &object);  // it stays empty where there is none
  return object;
}

// Whether it may be changed: the program's or a library's, which is then not unloaded any more. Our
// own loops are left alone: they know when they wait too long.
bool is_for_traps(const void* code) {
  static const void* const ours = object_of(reinterpret_cast<const void*>(&is_for_traps)).dli_fbase;
  static const void* const program =
      object_of(reinterpret_cast<const void*>(getauxval(AT_ENTRY))).dli_fbase;
  const Dl_info object = object_of(code);
  if (object.dli_fbase == program) return program != nullptr;  // in tests ours, too
  return object.dli_fbase != nullptr && object.dli_fbase != ours &&
         dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

}  // namespace

SpinWatch& SpinWatch::of_process() {
  static SpinWatch& watch = *new SpinWatch;
  return watch;
}

bool SpinWatch::prepare() {
  std::call_once(once_, [this] {
    if (!os::catch_interruptions().ok() || !os::catch_traps(*this).ok()) return;
    auto started = os::Thread::start(watch, this);
    if (!started.ok()) return;
    thread_ = std::move(started).value();
    is_prepared_ = true;
  });
  return is_prepared_;
}

void SpinWatch::begin() {
  if (!prepare()) return;
  const std::lock_guard lock(mutex_);
  // Relaxed: the watching thread asks again within a moment.
  if (teams_.fetch_add(1, std::memory_order_relaxed) == 0) set(true);
  if (asleep_.exchange(0, std::memory_order_acq_rel) != 0) os::futex_wake(asleep_, 1);
}

void SpinWatch::end() {
  if (!prepare()) return;
  const std::lock_guard lock(mutex_);
  if (teams_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  set(false);
  for (auto& thread : threads_) thread.store(0, std::memory_order_relaxed);
}

void SpinWatch::enter(std::uint32_t number) {
  const std::uint32_t place = number % kMostThreads;
  if (own_id == 0) {
    own_id = os::current_thread_id();
    (void)os::have_alternate_stack();  // where it gets none, handlers run on the one it has
  }
  own_place = place;
  threads_[place].store(own_id, std::memory_order_relaxed);
}

void SpinWatch::leave(std::uint32_t number) {
  threads_[number % kMostThreads].store(0, std::memory_order_relaxed);
}

// Traps are of use while a team runs. Under mutex_.
void SpinWatch::set(bool traps) {
  if (is_set_ == traps) return;
  if (traps && !os::catches_traps()) return;
  is_set_ = traps;
  for (std::size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
    const Trap& trap = loops_[i];
    os::write_code(reinterpret_cast<std::uintptr_t>(trap.loop.branch),
                   traps ? os::kBreakpoint : trap.original);
  }
}

bool SpinWatch::add(const SpinLoop& loop) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  const auto end = loops_.begin() + static_cast<std::ptrdiff_t>(count);
  const bool is_known = std::any_of(loops_.begin(), end, [&loop](const Trap& trap) {
    return trap.loop.branch == loop.branch;
  });
  if (is_known || count == kMostLoops || !os::catches_traps()) return false;
  loops_[count] = {loop, *loop.branch};
  count_.store(count + 1, std::memory_order_release);
  if (is_set_) os::write_code(reinterpret_cast<std::uintptr_t>(loop.branch), os::kBreakpoint);
  return true;
}

// What threads did when they were last interrupted, and again. Whether one was found to spin.
bool SpinWatch::look() {
  bool found = false;
  for (std::size_t i = 0; i < kMostThreads; ++i) {
    const std::uintptr_t at = found_at_[i].exchange(0, std::memory_order_relaxed);
    const auto* const code = reinterpret_cast<const Byte*>(at);
    if (const auto loop = spin_loop_at(code); loop.has_value() && is_for_traps(code)) {
      found = add(*loop) || found;
    }
    const int id = threads_[i].load(std::memory_order_relaxed);
    // A call that waits would end early.
    if (id != 0 && !os::waits_in_system_call(id)) os::interrupt_thread(id, *this);
  }
  return found;
}

void SpinWatch::watch(void* self) {
  SpinWatch& all = *static_cast<SpinWatch*>(self);
  os::set_thread_name("amasia-spins");
  os::declare_runtime_thread();
  Nanos pause = kLook;
  for (;;) {
    os::futex_wait(all.asleep_, 0, pause);
    if (all.watches()) {
      pause = all.look() ? kLook : std::min(2 * pause, kSlowest);
      continue;
    }
    all.asleep_.store(1, std::memory_order_release);
    // One that begins now finds that this thread sleeps, or is found here.
    if (!all.watches()) os::futex_wait(all.asleep_, 1, -1);
    all.asleep_.store(0, std::memory_order_relaxed);
    pause = std::max(kLook, pause / 2);
  }
}

void SpinWatch::interrupted(const os::InterruptedThread& thread) {
  found_at_[own_place].store(thread.instruction(), std::memory_order_relaxed);
}

std::uintptr_t SpinWatch::trapped(std::uintptr_t at, std::uint64_t flags) noexcept {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    const SpinLoop& loop = loops_[i].loop;
    if (reinterpret_cast<std::uintptr_t>(loop.branch) != at) continue;
    if (!jumps_back(loop, flags)) return reinterpret_cast<std::uintptr_t>(loop.next);
    os::yield_core();
    return reinterpret_cast<std::uintptr_t>(loop.begin);
  }
  return 0;
}

}  // namespace amasia::omp
