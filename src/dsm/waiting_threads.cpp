// SPDX-License-Identifier: Apache-2.0
#include "dsm/waiting_threads.hpp"

#include <algorithm>
#include <utility>

namespace amasia::dsm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // see ThreadSlot

bool in(PageRun run, PageIndex page) { return page.value - run.first.value < run.count; }

// One writer at a time (the engine's lock), so that a plain addition will do.
template <typename T>
void add_to(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(kRelaxed) + amount, kRelaxed);
}

}  // namespace

std::uint32_t WaitingThreads::slot_of(std::int32_t thread_id) {
  std::uint32_t free = 0;
  for (std::uint32_t i = 1; i < slots_end_; ++i) {
    const std::int32_t owner = slots_[i].thread_id.load(kRelaxed);
    if (owner == thread_id) return i;
    if (owner == 0 && free == 0) free = i;
  }
  if (free == 0) {
    if (slots_end_ == kMaxSlots) return 0;
    free = slots_end_++;
  }
  slots_[free].thread_id.store(thread_id, kRelaxed);
  return free;
}

void WaitingThreads::free_slot(const ThreadSlot* slot) {
  if (slot == slots_.data()) return;  // the shared one
  const auto index = static_cast<std::size_t>(slot - slots_.data());
  AMASIA_CHECK(index < kMaxSlots, "a thread slot that is not the engine's");
  ThreadSlot& own = slots_[index];
  if (own.thread_id.load(kRelaxed) == 0) return;
  own.thread_id.store(0, kRelaxed);
  own.stall_ns.store(0, kRelaxed);
  own.faults_read.store(0, kRelaxed);
  own.faults_write.store(0, kRelaxed);
  own.faults_upgrade.store(0, kRelaxed);
}

void WaitingThreads::book(const WaitingThread& thread, Nanos now) {
  ThreadSlot& slot = slots_[thread.slot];
  add_to(slot.stall_ns, now - thread.since);
  stall_ns_ += now - thread.since;
}

bool WaitingThreads::add(const WaitingThread& thread) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (waiting_[i].thread_id != thread.thread_id) continue;
    if (waiting_[i].page == thread.page && waiting_[i].kind == thread.kind) return false;
    // Woken unseen (an installation of a neighbouring run), the thread came to another page.
    book(waiting_[i], thread.since);
    waiting_[i] = thread;
    return true;
  }
  AMASIA_CHECK(count_ < kMaxWaiting, "more threads wait for pages than there is room for");
  waiting_[count_++] = thread;
  return true;
}

std::size_t WaitingThreads::finish(PageRun run, Nanos now, std::span<WaitingThread> done) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < count_ && found < done.size();) {
    if (!in(run, waiting_[i].page)) {
      ++i;
      continue;
    }
    done[found++] = waiting_[i];
    book(waiting_[i], now);
    remove(i);
  }
  return found;
}

Nanos WaitingThreads::note_served(const WaitingThread& thread, Nanos now, Nanos cpu) {
  const Served served{.thread_id = thread.thread_id,
                      .pauses = slots_[thread.slot].pauses.load(kRelaxed),
                      .at = now,
                      .cpu = cpu};
  const Served before = std::exchange(served_[thread.slot], served);
  if (before.thread_id != served.thread_id || before.pauses != served.pauses) return 0;
  return std::max<Nanos>(0, thread.since - before.at - (cpu - before.cpu));
}

bool WaitingThreads::any(PageRun run) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (in(run, waiting_[i].page)) return true;
  }
  return false;
}

}  // namespace amasia::dsm
