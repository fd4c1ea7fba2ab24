// SPDX-License-Identifier: Apache-2.0
#include "omp/team/team.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/wait_scope.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

class Team::Body final : public LocalBody {
 public:
  explicit Body(Team& team) : team_(team) {}
  void run(std::uint32_t local_id, std::uint32_t local_size, void* abi0, void* abi1) override {
    team_.run_thread(local_id, local_size, abi0, abi1);
  }

 private:
  Team& team_;
};

namespace {

std::uint32_t to_32_bits(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}
// Of CPU time, before it tells how much longer computing takes.
constexpr Nanos kLongEnough = 100 * base::kMicrosecond;
constexpr double kNewWeight = 0.25;

std::uint64_t place_within(std::uint64_t place, std::uint64_t part) {
  return ((place ^ part) * 0x9e37'79b9'7f4a'7c15ULL) | 1;  // 0 is no place
}

std::uint64_t place_of(const void* function, std::span<const NodeShare> shares) {
  std::uint64_t place = reinterpret_cast<std::uint64_t>(function);
  for (const NodeShare& share : shares) {
    place = place_within(place, std::uint64_t{share.node.value} << 48 ^
                                    std::uint64_t{share.threads} << 32 ^
                                    std::uint64_t{share.seam == loops::Seam::kCoarse} << 31 ^
                                    share.speed);
  }
  return place;
}

}  // namespace

Team::Team(Node& node)
    : node_(node), counters_(node.settings().counters), stretch_(node.settings().stretch) {
  const std::vector<loops::CpuLimit>& limits = node.settings().cpu_limits;
  cpu_is_limited_ = !limits.empty() && limits[node.self().value].holds();
}

Team::~Team() = default;

void Team::begin(const Begin& begin) {
  AMASIA_CHECK(begin.rank < begin.shares.size(), "a node takes part in the regions that it runs");
  rank_ = begin.rank;
  runtime_ = begin.runtime;
  shares_.assign(begin.shares.begin(), begin.shares.end());
  meets_on_board_ = node_.all_on_board(shares_);
  powers_ = powers_of(shares_);
  works_alone_ = shares_.size() > 1 && std::ranges::count_if(powers_, [](loops::Power power) {
                                         return power.total() > 0;
                                       }) == 1;
  size_ = shares_.back().offset + shares_.back().threads;
  forked_ = local_size();
  first_powers_ = powers_;
  may_come_home_ = begin.may_come_home;
  can_leave_ = begin.can_leave;
  guests_.reset();
  homeward_ = {};
  if (may_come_home_ && on_origin()) homeward_ = loops::Homeward(begin.allowance);
  words_.assign(begin.outlined.words.begin(), begin.outlined.words.end());
  outlined_ = Outlined{begin.outlined.function, words_};
  reentry_ = begin.reentry;
  numbered_ = begin.numbered;
  place_ = shares_[rank_].speed > 0 ? place_of(outlined_.function, shares_) : 0;
  location_ = begin.location;
  proc_bind_ = begin.proc_bind;
  mend_dynamic_ = begin.mend_dynamic;
  shows_affinity_ = begin.shows_affinity;
  values_ = begin.values;
  extra_.assign(begin.extra.begin(), begin.extra.end());
  book_ = begin.book;
  counts_ = begin.counts;
  is_measured_ = begin.is_measured;
  arguments_ = begin.arguments;
  singles_.reset(local_size());
  // Without a runtime: tests of single constructs.
  can_be_cancelled_ = runtime_ != nullptr && runtime_->cancellation();
  agreed_ = 0;
  meetings_.store(0, std::memory_order_relaxed);
  reductions_ = 0;
  deposits_.assign(local_size(), Deposit{});
  travellers_.resize(may_come_home_ ? forked_ : 0);
  departed_.store(0, std::memory_order_relaxed);
  if (faulted_.size() < local_size()) faulted_.resize(local_size(), 1);
  // Who waits for guests may not see it grow.
  if (on_origin() && may_come_home_) deposits_.reserve(size_);
  if (may_come_home_ && (on_origin() || can_leave_)) {
    halt_.open(begin.region, forked_);
  } else {
    halt_.close();
  }
  region_.store(begin.region, std::memory_order_release);  // partner: region()
  while (frames_.size() < local_size()) {
    auto stack = node_.services().acquire_stack();
    if (!stack.ok()) {
      node_.services().abort_job(fmt::format("node {} cannot run {} threads of a region: {}",
                                             node_.self().value, local_size(),
                                             stack.error().message));
    }
    stacks_.push_back(stack.value());
    frames_.push_back(std::make_unique<ThreadFrame>());
  }
}

std::uint32_t Team::give_arguments_back() {
  return arguments_.mask != 0 ? node_.services().give_back(arguments_) : 0;
}

void Team::run() {
  Body body(*this);
  runtime_->fork(location_, forked_, proc_bind_, body);
  if (guests_ != nullptr) guests_->await_end();
}

void Team::enlist(ThreadFrame& frame, std::uint32_t local_id) {
  frame.team = this;
  frame.local_id = local_id;
  frame.global_id = local_offset() + local_id;
  frame.first_rank = rank_;
  frame.first_local_id = local_id;
  frame.serial_below = forked_ == 1;
}

void Team::run_thread(std::uint32_t local_id, std::uint32_t local_size, void* abi0, void* abi1) {
  if (local_size != this->local_size() || local_id >= local_size) {
    // Global ids were dealt out before the fork; with fewer threads some would be missing.
    node_.services().abort_job(fmt::format(
        "the OpenMP runtime of node {} gave a region {} threads where {} were asked for "
        "(see OMP_THREAD_LIMIT, and the limits on processes and memory)",
        node_.self().value, local_size, this->local_size()));
  }
  ThreadFrame& frame = *frames_[local_id];
  const ManagedStack stack = stacks_[local_id];
  frame = ThreadFrame{};
  enlist(frame, local_id);
  frame.abi = {abi0, abi1};
  frame.book = frame.global_id == 0 ? book_ : nullptr;
  frame.stack_low = stack.bottom;
  frame.stack_top = stack.top;
  ThreadContext& context = thread_context;
  context.frame = &frame;
  context.hidden = nullptr;
  context.local_depth = 0;
  context.outer = nullptr;
  context.node = &node_;
  if (shows_affinity_) runtime_->show_affinity();
  if (values_ != KeptValues::kNone) node_.thread_values().enter(frame.global_id);
  frame.before = node_.services().thread_counters();
  frame.measures_cpu =
      is_measured_ && (counts_ || cpu_is_limited_ || faulted_[local_id] != 0);
  frame.active = -os::monotonic_now();
  if (frame.measures_cpu) frame.cpu = -os::own_cpu_time();
  if (counts_ && local_id == 0 && counters_.begin()) frame.counters = &counters_;
  if (mend_dynamic_) runtime_->set_dynamic(true);
  if (may_come_home_) halt_.enter(local_id);
  // Returns from home, too: where the thread's part ends on another node.
  on_managed_stack(
      stack.top,
      [this, &frame] {
        runtime_->invoke(frame, outlined_);
        // Tasks that are still to run do so here, on a stack that other nodes can reach, and not in
        // the runtime's own join barrier.
        const WaitScope waiting(frame);
        if (can_be_cancelled_) {
          leave_together(frame);
        } else if (runtime_->gather(frame)) {
          runtime_->release(frame);
        }
      },
      &frame.home);
  // At home the leader stays until the others have ended it, and is looked at.
  if (may_come_home_ && !on_origin()) halt_.leave(local_id);
  if (std::exchange(frame.counters, nullptr) != nullptr) {
    const LeaderCounters::Counts counted = counters_.end();
    frame.totals.cache_misses = to_32_bits(counted.cache_misses);
    frame.totals.instructions = counted.instructions;
  }
  // What the thread waits for from now on, such as the other nodes' join, is no longer the team's.
  frame.active += os::monotonic_now() - frame.waited;
  if (frame.measures_cpu) frame.cpu += os::own_cpu_time();
  const Nanos waited_us = frame.waited / base::kMicrosecond;
  frame.totals.waited_us = to_32_bits(static_cast<std::uint64_t>(waited_us));
  const ThreadCounters after = node_.services().thread_counters();
  frame.totals.faults = static_cast<std::uint32_t>(after.faults - frame.before.faults);
  frame.totals.stall_ns = after.stall_ns - frame.before.stall_ns;
  frame.calls = after.calls_ns - frame.before.calls_ns;
  frame.totals.marks |= marks_of(frame);
  if (frame.global_id != 0 && node_.watches_values() &&
      node_.services().has_changed_thread_locals()) {
    frame.totals.marks |= kChangedValues;
  }
}

// gcc's code for static loops asks for both together, clang's for neither.
std::uint32_t Team::marks_of(const ThreadFrame& frame) const {
  const bool by_program = runtime_->abi() == Abi::kGomp
                              ? frame.asked_number != frame.asked_size
                              : frame.asked_number + frame.asked_size > 0;
  return (by_program ? kKnowsTeamSize : 0) |
         (frame.asked_size > frame.asked_number ? kAskedForSize : 0);
}

// A fault costs a thread more than the engine sees of it: until the engine learns of it, and until
// the thread runs again after it. So a thread that has had faults has computed for as long as its
// CPU time says, stretched by what the node's threads have to share their cores with. And so has
// one in an execution that is to tell what the nodes can do: data are on their way then, and the
// thread that sends them may need the same core. What the origin does for it is its work, too.
NodeTotals Team::totals() {
  NodeTotals sum;
  const double layers = std::max(1.0, static_cast<double>(forked_) / node_.own_capacity());
  if (guests_ != nullptr) sum.marks |= guests_->marks();
  // The leader stands for them all.
  const Nanos spun = halt_.spun();
  for (std::uint32_t id = 0; id < forked_; ++id) {
    const ThreadFrame& frame = *frames_[id];
    const NodeTotals& one = frame.totals;
    const Nanos active = std::max<Nanos>(0, frame.active - spun);
    const Nanos cpu = std::max<Nanos>(0, frame.cpu - spun);
    Nanos busy = std::max<Nanos>(0, active - one.stall_ns);
    if ((one.faults > 0 || counts_) && frame.measures_cpu) {
      const double computed = static_cast<double>(cpu) * stretch_ * layers;
      busy = std::clamp<Nanos>(static_cast<Nanos>(computed) + frame.calls, 0, busy);
    } else if (frame.measures_cpu && cpu > kLongEnough) {
      const auto here = static_cast<double>(busy - frame.calls);
      const double seen = here / static_cast<double>(cpu) / layers;
      stretch_ += kNewWeight * (std::max(1.0, seen) - stretch_);
    }
    faulted_[id] = one.faults > 0 ? 1 : 0;
    sum.faults += one.faults;
    sum.busy_ns += busy;
    sum.stall_ns += active - busy;
    sum.waited_us = to_32_bits(std::uint64_t{sum.waited_us} + one.waited_us);
    if (cpu_is_limited_) sum.cpu_ns += frame.cpu;
    sum.iterations += one.iterations;
    sum.marks |= one.marks;
    sum.cache_misses += one.cache_misses;
    sum.instructions += one.instructions;
  }
  return sum;
}

void Team::barrier(ThreadFrame& frame) {
  const WaitScope waiting(frame);
  node_.services().note_pause();
  if (gather_here(frame)) {
    meet(std::nullopt);
    release_here(frame);
  }
  delete std::exchange(frame.given, nullptr);
}

// A thread that has been cancelled is here while others come to barriers: it meets them.
void Team::leave_together(ThreadFrame& frame) {
  deposits_[frame.local_id].at_end = true;
  do {
    barrier(frame);
  } while ((agreed_ & kGoesOn) != 0);
}

void Team::raise(Cancels what, std::uint32_t number) {
  const Epoch epoch{region(), number};
  if (!cancels_.raise(what, epoch)) return;  // all are told already
  on_native_stack([this, what, epoch] {
    const CancelBody body{epoch.region, epoch.number, static_cast<std::uint32_t>(what), 0};
    for (const NodeShare& share : shares_) {
      if (share.node == node_.self()) continue;
      node_.send(share.node, kCancelMessage, fabric::bytes_of(body));
    }
  });
}

void Team::leave_loop(ThreadFrame& frame) {
  if (frame.loop.slot != nullptr && !frame.loop.ordered) node_.work_sharing()->leave(frame);
  frame.loop = ThreadLoop{};
}

bool Team::cancel(ThreadFrame& frame, Cancels what) {
  if (!can_be_cancelled_) return false;
  raise(what, what == Cancels::kParallel ? 0 : meetings());
  // Whoever waits for more of its iterations waits for threads that have left.
  const bool handed_out = frame.loop.slot != nullptr && !frame.loop.ordered;
  if (what == Cancels::kWorkshare && handed_out) {
    raise(Cancels::kLoop, static_cast<std::uint32_t>(frame.loop.number));
  }
  leave_loop(frame);
  node_.wake();
  return true;
}

bool Team::cancellation_point(ThreadFrame& frame, Cancels what) {
  if (!can_be_cancelled_ || !cancels_.is_raised(what, {region(), meetings()})) return false;
  leave_loop(frame);
  return true;
}

bool Team::gives_up_loop(std::uint64_t number) const {
  if (!can_be_cancelled_) return false;
  return cancels_.is_raised(Cancels::kParallel, {region(), 0}) ||
         cancels_.is_raised(Cancels::kLoop, {region(), static_cast<std::uint32_t>(number)});
}

bool Team::gather(ThreadFrame& frame) {
  const WaitScope waiting(frame);
  node_.services().note_pause();
  if (!gather_here(frame)) return false;
  meet(std::nullopt);
  if (frame.global_id == 0) return true;
  // The other nodes' leaders wait with their threads for the master's second half.
  meet(std::nullopt);
  release_here(frame);
  return false;
}

void Team::release(ThreadFrame& frame) {
  const WaitScope waiting(frame);
  meet(std::nullopt);
  release_here(frame);
}

std::uint64_t Team::barrier_with(ThreadFrame& frame, std::optional<std::uint64_t> value) {
  Deposit& deposit = deposits_[frame.local_id];
  deposit.has_word = value.has_value();
  deposit.word = value.value_or(0);
  deposit.meeting = meetings();
  const WaitScope waiting(frame);
  node_.services().note_pause();
  if (gather_here(frame)) {
    word_ = meet(deposited_word());
    release_here(frame);
  }
  return word_;  // not written again before every thread of the node has come to the next gather
}

std::optional<std::uint64_t> Team::deposited_word() const {
  for (const Deposit& deposit : deposits_) {
    if (deposit.has_word && deposit.meeting == meetings()) return deposit.word;
  }
  return std::nullopt;
}

std::uint64_t Team::meet(std::optional<std::uint64_t> value, std::uint64_t flags) {
  const std::uint32_t generation = meetings();
  Word brought{value.has_value(), value.value_or(0)};
  if (flags != 0) brought.join({true, flags});
  if (can_be_cancelled_) {
    const bool all_at_end = std::ranges::all_of(deposits_, &Deposit::at_end);
    brought.join({true, cancels_.word({region(), generation}, all_at_end)});
  }
  on_native_stack([&] {
    node_.services().publish_output();
    const std::optional<Word> met = node_.meet(*this, generation, brought);
    if (met) {
      brought = *met;
      return;
    }
    // The others' threads come to this barrier as guests.
    await_guests();
    const std::optional<std::uint64_t> given = deposited_word();
    brought = {given.has_value(), given.value_or(0)};
  });
  meetings_.store(generation + 1, std::memory_order_relaxed);
  agreed_ = brought.value & Word::kFlags;
  return brought.value & ~Word::kFlags;
}

bool Team::single(ThreadFrame& frame) {
  const std::uint64_t number = frame.singles_met++;
  // On the origin: the claim itself. Elsewhere: which of the node's threads asks for it.
  if (!singles_.claim(number)) return false;
  if (!on_origin()) return ask_for_single(frame, number);
  announce_single(number);
  return true;
}

void Team::announce_single(std::uint64_t number) {
  on_native_stack([this, number] {
    const SingleBody taken{region(), 0, number, 0, 0};
    for (std::uint32_t rank = 1; rank < shares_.size(); ++rank) {
      node_.send(shares_[rank].node, kTakenMessage, fabric::bytes_of(taken));
    }
  });
}

bool Team::ask_for_single(const ThreadFrame& frame, std::uint64_t number) {
  using Verdict = SingleBoard::Verdict;
  const std::uint32_t local_id = frame.local_id;
  Verdict verdict = singles_.verdict(local_id, number);
  if (verdict == Verdict::kUnknown) {
    on_native_stack([&] {
      const SingleBody claim{region(), local_id, number, 0, 0};
      node_.send(shares_[0].node, kClaimMessage, fabric::bytes_of(claim));
      node_.wait_until([&] { return singles_.verdict(local_id, number) != Verdict::kUnknown; },
                       node_.settings().spin_in_region, "the decision about a single construct", 0);
    });
    verdict = singles_.verdict(local_id, number);
  }
  return verdict == Verdict::kMine;
}

void Team::copy_private(ThreadFrame& frame, PrivateList list, void (*copy)(void* to, void* from),
                        bool did_it) {
  // Copying counts as waiting, and as being in our code: `copy` is the program's.
  const WaitScope waiting(frame);
  Deposit& own = deposits_[frame.local_id];
  if (did_it) {
    own.list = static_cast<void**>(list.data);
    const GivenCopies given(node_.services(), list);
    barrier_with(frame, reinterpret_cast<std::uint64_t>(&given));
    barrier(frame);  // the giver's copies live until all have taken them
    return;
  }
  const std::uint64_t from = barrier_with(frame, std::nullopt);
  if (void* const here = given_here(); here != nullptr) {
    copy(list.data, here);
  } else {
    reinterpret_cast<const GivenCopies*>(from)->take(node_.services(), list, copy);
  }
  barrier(frame);
}

// What a thread of this node has given, as its own node can read it; nullptr: it was another's. The
// giver's deposit stays as it is until all threads have come to the next barrier.
void* Team::given_here() const {
  const auto giver = std::ranges::find_if(deposits_, [this](const Deposit& deposit) {
    return deposit.has_word && deposit.meeting + 1 == meetings();
  });
  return giver != deposits_.end() ? giver->list : nullptr;
}

void* Team::give_or_take(ThreadFrame& frame, void* data) {
  std::optional<std::uint64_t> given;
  if (data != nullptr) {
    // The struct's size is not known: it ends on the stack, and has few variables.
    constexpr std::size_t kMostWords = 512;
    auto* const words = static_cast<void**>(data);
    const auto room = reinterpret_cast<void**>(frame.stack_top) - words;
    const bool on_stack = data >= frame.stack_low && room > 0;
    const auto count = std::min(static_cast<std::size_t>(room), kMostWords);
    deposits_[frame.local_id].list = words;
    const std::span<void* const> window(words, on_stack ? count : 0);
    frame.given = new GivenCopies(node_.services(), window);
    given = reinterpret_cast<std::uint64_t>(frame.given->list());
  }
  const std::uint64_t from = barrier_with(frame, given);
  void* const here = given_here();
  return here != nullptr ? here : reinterpret_cast<void*>(from);
}

loops::Iterations Team::static_share(ThreadFrame& frame, const loops::Space& space) const {
  bool by_speed = false;
  const loops::Iterations share =
      loops::static_share(space, first_powers_, frame.first_rank, frame.first_local_id, &by_speed);
  if (by_speed) frame.totals.marks |= kDividedBySpeed;
  return share;
}

void Team::enter_loop(const ThreadFrame& frame, const void* code) const {
  if (frame.local_id == 0) enter_part(code);
}

void Team::enter_part(const void* code) const {
  if (place_ == 0) return;
  node_.services().enter_place(place_within(place_, reinterpret_cast<std::uint64_t>(code)));
}

std::uint32_t Team::next_section(ThreadFrame& frame, std::uint32_t count) {
  if (frame.next_section >= count) return count;
  const std::uint64_t section = frame.next_section;
  frame.next_section += size_;
  return static_cast<std::uint32_t>(section);
}

}  // namespace amasia::omp
