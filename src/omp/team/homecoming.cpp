// SPDX-License-Identifier: Apache-2.0
#include "omp/team/homecoming.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "omp/launch/own_addresses.hpp"
#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/team/team.hpp"
#include "omp/wait_scope.hpp"
#include "omp/work_sharing/doacross.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

// What functions that check their stack find in the thread's control block when they begin, and
// want to find when they end (x86-64's psABI has no word on it; gcc, clang and glibc agree).
std::uint64_t stack_guard() {
  std::uint64_t guard = 0;
  asm volatile("movq %%fs:0x28, %0" : "=r"(guard));
  return guard;
}
void set_stack_guard(std::uint64_t guard) { asm volatile("movq %0, %%fs:0x28" : : "r"(guard)); }

}  // namespace

Guests::Guests(Team& team, std::span<const Traveller> travellers)
    : team_(team), spin_(team.node().settings().spin_in_region) {
  for (const Traveller& traveller : travellers) {
    auto& guest = guests_.emplace_back(std::make_unique<Guest>());
    guest->all = this;
    guest->from = traveller;
    ThreadFrame& frame = guest->frame;
    static_cast<MovableThread&>(frame) = traveller.thread;
    frame.team = &team;
    frame.local_id = frame.global_id;
    frame.serial_below = true;
    frame.is_guest = true;
    if (traveller.in_doacross != 0) team.node().doacross()->join(frame);
  }
}

void Guests::start() {
  const std::span<const int> cores = team_.node().services().cores();
  if (team_.size() > cores.size()) {
    spin_ = 0;  // who is waited for needs the core
    short_turns_.start(cores);
    watch_ = &SpinWatch::of_process();
    watch_->begin();
  }
  for (const auto& guest : guests_) {
    const Status started = team_.node().services().start_thread(guest->thread, run, guest.get());
    if (!started.ok()) {
      team_.node().services().abort_job(
          fmt::format("node 0 cannot go on with a thread of another node: {}",
                      started.error().message));
    }
  }
}

void* Guests::run(void* guest) {
  auto& self = *static_cast<Guest*>(guest);
  self.all->go_on(self);
  return nullptr;
}

void Guests::go_on(Guest& guest) {
  os::let_interruptions_through();  // who took it in may have been interrupted itself
  ThreadFrame& frame = guest.frame;
  Node& node = team_.node();
  team_.runtime().set_icvs(guest.from.icvs);
  ThreadContext& context = thread_context;
  context.frame = &frame;
  context.node = &node;
  frame.before = node.services().thread_counters();
  frame.active = -os::monotonic_now();
  watch(frame);
  const bool has_values = team_.values_follow();
  if (has_values) node.thread_values().enter(frame.global_id);
  // The stack is memory that may have to come from the other node, so what follows may block.
  direct_home(*frame.entry, guest.end);
  const std::uint64_t own_guard = stack_guard();
  set_stack_guard(guest.from.stack_guard);
  std::byte* stack_pointer;
  asm volatile("movq %%rsp, %0" : "=r"(stack_pointer));
  context.native_stack = stack_pointer - 512;
  amasia_switch(
      stack_pointer - 512,
      [](void* it) {
        const ThreadFrame& left = static_cast<Guest*>(it)->frame;
        errno = left.error;
        if (left.interrupted == nullptr) amasia_resume(&left.departure);
        os::go_on({left.interrupted, left.interrupted_size});
      },
      &guest, &guest.end);
  set_stack_guard(own_guard);
  if (watch_ != nullptr) watch_->leave(frame.global_id);
  if (has_values) node.thread_values().keep_own(frame.global_id);
  context = ThreadContext{};
  frame.active += os::monotonic_now() - frame.waited;
  frame.totals.marks |= team_.marks_of(frame);
  ended_.fetch_add(1, std::memory_order_release);  // partner: await_end
  node.wake();
}

void Guests::arrive_and_wait() {
  Node& node = team_.node();
  // Relaxed: it changes once this thread has arrived.
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  arrived_.fetch_add(1, std::memory_order_release);  // partner: await_all
  node.wake();
  on_native_stack([&] {
    node.wait_until([&] { return generation_.load(std::memory_order_acquire) != generation; },
                    spin_, "the other threads of a region", 0);
  });
}

void Guests::await_all() {
  Node& node = team_.node();
  node.wait_until([&] { return arrived_.load(std::memory_order_acquire) == guests_.size(); },
                  spin_, "threads that have come from other nodes", 0);
  arrived_.store(0, std::memory_order_relaxed);  // G1
}

void Guests::let_go() {
  generation_.fetch_add(1, std::memory_order_release);  // partner: arrive_and_wait
  team_.node().wake();
}

void Guests::await_end() {
  Node& node = team_.node();
  node.wait_until([&] { return ended_.load(std::memory_order_acquire) == guests_.size(); },
                  node.settings().spin_in_region, "threads that have come from other nodes", 0);
  for (const auto& guest : guests_) pthread_join(guest->thread, nullptr);
  short_turns_.stop();
  if (watch_ != nullptr) watch_->end();
}

std::uint32_t Guests::marks() const {
  return std::accumulate(guests_.begin(), guests_.end(), std::uint32_t{0},
                         [](std::uint32_t marks, const auto& guest) {
                           return marks | guest->frame.totals.marks;
                         });
}

bool Team::gather_here(ThreadFrame& frame) {
  if (guests_ == nullptr) return runtime_->gather(frame);
  if (frame.is_guest) {
    guests_->arrive_and_wait();
    return false;
  }
  guests_->watch(frame);
  if (!runtime_->gather(frame)) return false;
  on_native_stack([this] { guests_->await_all(); });
  return true;
}

void Team::release_here(ThreadFrame& frame) {
  if (guests_ != nullptr) guests_->let_go();
  runtime_->release(frame);
}

void Team::barrier_of_program(ThreadFrame& frame, const void* place) {
  if (!may_come_home_) return barrier(frame);
  const std::uint64_t wishes =
      on_origin() && frame.global_id == 0 ? wishes_for_home(frame, place) : 0;
  frame.keeps_own_address =
      can_leave_ && node_.services().may_keep_own_addresses() && keeps_own_address(frame.entry);
  {
    const WaitScope waiting(frame);
    node_.services().note_pause();
    if (gather_here(frame)) {
      meet(std::nullopt, wishes | flags_for_home());
      if ((agreed_ & kTell) != 0 && !on_origin()) tell_work(frame);
      if (goes_home() && on_origin()) {
        take_guests(shares().subspan(1), homeward_.lost());
        runtime_->release(frame);  // guests are past this barrier
      } else {
        release_here(frame);
      }
    }
    delete std::exchange(frame.given, nullptr);
  }
  if (goes_home() && !on_origin()) depart(frame);
}

// A leader's, which stands for its node's threads.
Nanos Team::computed(const ThreadFrame& frame) const {
  const ActiveTimes times = active_times(frame);
  const ThreadCounters now = node_.services().thread_counters();
  const Nanos stall = now.stall_ns - frame.before.stall_ns;
  const Nanos spun = halt_.spun();
  Nanos busy = std::max<Nanos>(0, times.active - spun - stall);
  if (frame.measures_cpu) {
    const double layers = std::max(1.0, static_cast<double>(forked_) / node_.own_capacity());
    const auto cpu = static_cast<double>(times.cpu - spun);
    const Nanos calls = now.calls_ns - frame.before.calls_ns;
    busy = std::min(busy, static_cast<Nanos>(cpu * stretch_ * layers) + calls);
  }
  return busy;
}

// By the origin's leader, before a meeting.
std::uint64_t Team::wishes_for_home(const ThreadFrame& frame, const void* place) {
  homeward_.come_to(place);
  const Nanos elapsed = frame.active + os::monotonic_now();
  if (homeward_.is_due(elapsed)) {
    homeward_.ask(elapsed);
    node_.expect_work();
    own_work_ = computed(frame);
    return kTell;
  }
  if (!homeward_.asked()) return 0;
  const std::optional<double> others = node_.work_of_others(*this);
  if (!others) return 0;
  const bool wanted = homeward_.hear(static_cast<double>(own_work_) + *others);
  // A library may have been opened since the region began.
  return wanted && node_.services().can_move_threads() ? kComesHome : 0;
}

// By another node's leader, after one.
void Team::tell_work(const ThreadFrame& frame) {
  const WorkBody work{region(), 0, computed(frame)};
  on_native_stack([&] { node_.send(base::kOrigin, kWorkMessage, fabric::bytes_of(work)); });
}

// Of this node, before a meeting at which the region may come home.
std::uint64_t Team::flags_for_home() const {
  if (on_origin()) return 0;
  const auto stays = [](const auto& frame) {
    return frame->locks_held != 0 || frame->keeps_own_address;
  };
  const bool one_stays = std::any_of(frames_.begin(), frames_.begin() + forked_, stays);
  return can_leave_ && !one_stays ? 0 : kStays;
}

// By the leader, between the halves of the barrier. The node's other threads find the team changed.
void Team::take_guests(std::span<const NodeShare> from, double lost) {
  on_native_stack([this, from, lost] {
    node_.home_call_->end();  // it looks at the team that changes here
    const std::vector<Traveller> travellers = node_.await_travellers(*this, from);
    if (values_follow()) node_.take_values_home(travellers);
    if (travellers.front().thread.in_the_middle && node_.work_sharing() != nullptr) {
      node_.work_sharing()->forget(region(), progress().loops);
    }
    base::log_line(base::LogLevel::kDebug, "{} threads of other nodes come home, {:.0f} ms lost",
                   travellers.size(), lost / 1e6);
    lost_at_home_ = lost;
    const NodeShare all{.node = node_.self(), .threads = size_};
    shares_.assign(1, all);
    powers_ = powers_of(shares_);
    works_alone_ = false;
    place_ = 0;
    may_come_home_ = false;
    deposits_.resize(size_);
    guests_ = std::make_unique<Guests>(*this, travellers);
    guests_->start();
  });
}

// Not for inlining: where it returns the caller's frame is all that there is.
[[gnu::noinline]] void Team::depart(ThreadFrame& frame) {
  frame.error = errno;
  amasia_switch(
      static_cast<std::byte*>(thread_context.native_stack),
      [](void* it) {
        auto& leaving = *static_cast<ThreadFrame*>(it);
        leaving.team->leave(leaving);
      },
      &frame, &frame.departure);
}

// As depart(): where it has come home nothing is left of this call but its frame.
[[gnu::noinline]] bool Team::stop_in_call(ThreadFrame& frame) {
  frame.keeps_own_address = !on_origin() && node_.services().may_keep_own_addresses() &&
                            keeps_own_address(frame.entry);
  bool goes = false;
  on_native_stack([&] { goes = halt_.stop(frame); });
  if (!goes) return true;
  frame.in_the_middle = true;
  depart(frame);
  return false;
}

// On the native stack, since the managed one is the origin's once it knows of it.
void Team::leave(ThreadFrame& frame) {
  thread_context.native_stack = nullptr;
  const bool in_doacross = frame.doacross != nullptr;
  Traveller traveller{.thread = frame,
                      .stack_guard = stack_guard(),
                      .in_doacross = in_doacross ? 1U : 0U,
                      .turn = 0,
                      .icvs = {}};
  if (values_follow()) node_.send_values_home(frame.global_id);
  if (in_doacross) node_.doacross()->end(frame);
  if (Turns::is_in_one(frame.loop)) traveller.turn = node_.turns()->depart(frame);
  {
    const HideFrame hidden;
    traveller.icvs = runtime_->icvs();
  }
  travellers_[frame.local_id] = traveller;
  if (departed_.fetch_add(1, std::memory_order_acq_rel) + 1 == forked_) {
    TravellersHead head{region(), forked_};
    if (frame.in_the_middle && node_.work_sharing() != nullptr) {
      head.rest = node_.work_sharing()->depart(region(), frame.loops_met);
    }
    node_.send(base::kOrigin, kTravellersMessage, fabric::bytes_of(head),
               std::as_bytes(std::span(travellers_)));
  }
  amasia_resume(&frame.home);
}

std::optional<double> Team::lost_before_home() const {
  return guests_ != nullptr ? std::optional(lost_at_home_) : std::nullopt;
}

Progress Team::progress_of(const ThreadFrame& frame) const {
  return {.singles = frame.singles_met,
          .loops = frame.loops_met,
          .doacrosses = frame.doacrosses_met,
          .meetings = meetings(),
          .reductions = reductions_};
}

bool Team::is_in_step() const {
  const auto is_as_far = [this](const auto& frame) { return progress_of(*frame) == progress(); };
  const bool same = std::all_of(frames_.begin(), frames_.begin() + forked_, is_as_far);
  WorkSharing* const loops = node_.work_sharing();
  return same && (loops == nullptr || loops->may_depart(region(), progress().loops));
}

Nanos Team::spin_here() const {
  return guests_ != nullptr ? guests_->spin() : node_.settings().spin_in_region;
}

std::uint32_t Team::count_threads(bool (*is)(const ThreadFrame& frame)) const {
  return static_cast<std::uint32_t>(
      std::count_if(frames_.begin(), frames_.begin() + forked_,
                    [is](const auto& frame) { return is(*frame); }));
}

bool Team::take_in_here() {
  if (!is_in_step() || !node_.home_call_->take()) return false;
  take_guests(node_.home_call_->called(), node_.home_call_->lost());
  return true;
}

void Team::await_guests() {
  on_native_stack([this] { guests_->await_all(); });
}

void Team::await_guests_end() { guests_->await_end(); }

}  // namespace amasia::omp
