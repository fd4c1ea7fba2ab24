// SPDX-License-Identifier: Apache-2.0
#include "omp/team/home_call.hpp"

#include <algorithm>
#include <climits>
#include <iterator>

#include "omp/node.hpp"
#include "omp/team/team.hpp"
#include "omp/work_sharing/doacross.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {
namespace {

// Answers take a message to and fro; a thread that refuses from where it may not send says nothing.
constexpr Nanos kAnswer = 20 * base::kMillisecond;
// After so many ticks without a region the watcher sleeps until there is one.
constexpr int kIdleTicks = 50;
// How long nodes hold while the origin's threads come to where they wait for them, by what there
// was of the loop so far. Meanwhile these have their pages for themselves. Of a loop that is handed
// out the origin does all that is left, so the time begins again whenever it has begun some of it.
constexpr Nanos kPatience = 6;
constexpr Nanos kLeastHold = 20 * base::kMillisecond, kLongestHold = 5 * base::kSecond;
constexpr Nanos kGlances = 10 * base::kMillisecond;  // from one to the next

}  // namespace

HomeCall::~HomeCall() {
  stopping_.store(true, std::memory_order_relaxed);
  ring();
  thread_.join();
}

void HomeCall::ring() {
  news_.fetch_add(1, std::memory_order_release);  // partner: watch, await
  os::futex_wake(news_, INT_MAX);
}

void HomeCall::begin(double allowance) {
  if (!thread_.joinable()) {
    if (!os::catch_interruptions().ok()) return;  // loops stay where they are
    auto started =
        os::Thread::start([](void* call) { static_cast<HomeCall*>(call)->watch(); }, this);
    if (!started.ok()) return;
    thread_ = std::move(started).value();
  }
  allowance_ = allowance;
  // Sequentially consistent, as asleep_: either the watcher sees the region or this sees it asleep.
  region_.store(node_.team().region(), std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) ring();
}

void HomeCall::end() {
  if (!thread_.joinable()) return;
  region_.store(0, std::memory_order_release);
  if (!mutex_.try_lock()) {
    ring();  // it may wait for an answer
    mutex_.lock();
  }
  mutex_.unlock();
}

void HomeCall::watch() {
  os::set_thread_name("amasia-home");
  os::declare_runtime_thread();
  int idle = 0;
  std::uint32_t last = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint32_t region = region_.load(std::memory_order_acquire);
    if (region != 0 && region == last) look(region);
    idle = region == 0 ? idle + 1 : 0;
    last = region;
    if (idle >= kIdleTicks) {
      await_region();
      idle = 0;
    }
    // Replies ring, too: a tick is a tick.
    const Nanos end = os::monotonic_now() + settings_.tick;
    for (Nanos left = settings_.tick; left > 0 && !stopping_.load(std::memory_order_relaxed);
         left = end - os::monotonic_now()) {
      os::futex_wait(news_, news_.load(std::memory_order_acquire), left);
    }
  }
}

void HomeCall::await_region() {
  const std::uint32_t news = news_.load(std::memory_order_acquire);
  asleep_.store(true, std::memory_order_seq_cst);
  if (region_.load(std::memory_order_seq_cst) == 0) os::futex_wait(news_, news, -1);
  asleep_.store(false, std::memory_order_relaxed);
}

// At a region that was there a tick ago.
void HomeCall::look(std::uint32_t region) {
  const std::lock_guard lock(mutex_);
  if (region_.load(std::memory_order_acquire) != region) return;
  const Nanos now = os::monotonic_now();
  const std::uint32_t meetings = node_.team().meetings();
  if (region != stretch_region_ || meetings != stretch_meetings_) {
    if (region != stretch_region_) next_call_ = 0;
    stretch_region_ = region;
    stretch_meetings_ = meetings;
    stretch_began_ = now;
    held_ = 0;
    midway_.emplace(allowance_);
    first_seen_.reset();
    lost_ = 0;
  }
  const std::optional<loops::Midway::Look> seen = ask(region);
  if (!seen) return;
  const bool pays = midway_->hear(*seen);
  lost_ = midway_->lost();
  if ((!pays && !settings_.insists) || now < next_call_) return;
  const auto elapsed = static_cast<Nanos>(seen->elapsed);
  call(region, std::clamp(kPatience * elapsed, kLeastHold, kLongestHold));
  const Nanos shared = elapsed - held_;
  held_ += os::monotonic_now() - now;
  next_call_ = std::max(next_call_, os::monotonic_now() + shared / 2);
}

// Other nodes that have yet to end the region.
std::vector<NodeShare> HomeCall::nodes_in_region() const {
  std::vector<NodeShare> nodes;
  std::ranges::copy_if(node_.team().shares().subspan(1), std::back_inserter(nodes),
                       [this](const NodeShare& share) { return !node_.has_joined(share.node); });
  return nodes;
}

// nullopt: a node has no thread in the loop, or does not answer, or this is the first time; or all
// others have ended the region.
std::optional<loops::Midway::Look> HomeCall::ask(std::uint32_t region) {
  const std::span<const NodeShare> shares = node_.team().shares();
  const std::vector<NodeShare> others = nodes_in_region();
  if (others.empty()) return std::nullopt;
  const std::uint32_t number = seen_.wanted.load(std::memory_order_relaxed) + 1;
  seen_.wanted.store(number, std::memory_order_release);  // partner: Answers::put
  send_to(others, kLookMessage, LookBody{region, number});
  std::array<SeenBody, base::kMaxNodes>& seen = last_seen_;
  seen[0] = {.region = region,
             .number = number,
             .cpu = node_.team().halt().computed_by_leader(),
             .calls = 0,
             .to_and_fro = node_.services().stall_for_lost() + node_.waited_for_others()};
  const Nanos now = os::monotonic_now();
  if (!await(region, kAnswer, [&] { return seen_.have_come(others); })) return std::nullopt;
  const auto is_away = [&](const NodeShare& share) {
    return seen_.bodies[share.node.value].cpu < 0;
  };
  if (seen[0].cpu < 0 || std::ranges::any_of(others, is_away)) return std::nullopt;
  for (const NodeShare& share : others) seen[share.node.value] = seen_.bodies[share.node.value];
  if (!first_seen_) {
    first_seen_ = seen;
    stretch_began_ = now;
    return std::nullopt;
  }
  loops::Midway::Look look{.elapsed = static_cast<double>(now - stretch_began_)};
  const NodeSettings& settings = node_.settings();
  const auto cores = [&](const NodeShare& share) {
    return share.threads * settings.core_speeds[share.node.value];
  };
  for (const NodeShare& share : shares) {
    const std::uint16_t node = share.node.value;
    // A thread that shares its core computes for longer than its CPU time.
    const double layers =
        std::max(1.0, static_cast<double>(share.threads) / settings.capacity[node]);
    const auto cpu = static_cast<double>(seen[node].cpu - (*first_seen_)[node].cpu);
    const auto calls = static_cast<double>(seen[node].calls - (*first_seen_)[node].calls);
    const double worked = cpu * layers + calls / share.threads;
    look.alone += std::min(worked, look.elapsed) * cores(share) / cores(shares.front());
    const auto waited =
        static_cast<double>(seen[node].to_and_fro - (*first_seen_)[node].to_and_fro);
    look.to_and_fro = std::max(look.to_and_fro, waited / share.threads);
  }
  return look;
}

// The others halt; and go on, unless the leader takes them home.
void HomeCall::call(std::uint32_t region, Nanos patience) {
  const std::uint32_t number = halted_.wanted.load(std::memory_order_relaxed) + 1;
  halted_.wanted.store(number, std::memory_order_release);  // partner: Answers::put
  phase_.store(Phase::kAsked, std::memory_order_relaxed);
  called_ = nodes_in_region();
  send_to(called_, kHaltMessage, HaltBody{region, number, os::register_sets()});
  if (all_hold(region)) {
    phase_.store(Phase::kHeld, std::memory_order_release);  // partner: take
    node_.wake();
    hold(region, patience);
  }
  Phase phase = Phase::kHeld;
  phase_.compare_exchange_strong(phase, Phase::kIdle, std::memory_order_acquire);
  base::log_line(base::LogLevel::kDebug, "{:.0f} ms lost in a loop: threads of other nodes {}",
                 lost_ / 1e6,
                 phase == Phase::kAsked       ? "did not stop"
                 : phase == Phase::kHeld      ? "stopped in vain"
                 : phase == Phase::kOutOfStep ? "stopped where they are needed"
                                              : "stopped to come home");
  for (; phase == Phase::kTaking; phase = phase_.load(std::memory_order_acquire)) os::yield_core();
  if (phase != Phase::kTaken) tell(false);
  phase_.store(Phase::kIdle, std::memory_order_relaxed);
}

// Until the leader takes the others' threads home, or has looked for too long at what these would
// write: it may wait for a flag of theirs, or one of the origin's threads for their iterations.
void HomeCall::hold(std::uint32_t region, Nanos patience) {
  std::vector<os::InterruptedThread::Registers> seen;
  std::uint64_t left_of_loop = left_at_home(region);
  Nanos end = os::monotonic_now() + patience;
  for (Nanos left = patience; left > 0; left = end - os::monotonic_now()) {
    if (await(region, std::min(left, kGlances), [this] { return !is_held(); })) return;
    if (region_.load(std::memory_order_acquire) != region) return;
    // It waits for one of those that hold, as well as not.
    if (node_.team().halt().has_call()) return take_in_the_middle(region);
    if (const auto registers = node_.team().halt().glance_at_leader()) {
      // Where it has been so before nothing has changed but what others write, if anything.
      if (std::ranges::find(seen, *registers) != seen.end()) return take_in_the_middle(region);
      seen.push_back(*registers);
    }
    if (const std::uint64_t now = left_at_home(region); now != left_of_loop) {
      left_of_loop = now;
      end = os::monotonic_now() + patience;
    }
  }
}

// The leader waits for a flag of those that hold, and comes to no barrier before that: they are
// taken in where it is.
void HomeCall::take_in_the_middle(std::uint32_t region) {
  Halt& halt = node_.team().halt();
  const std::uint32_t number = halted_.wanted.load(std::memory_order_relaxed);
  if (halt.ask_here(number)) await(region, kAnswer, [this] { return !is_held(); });
  halt.give_up_here(number);
}

// Of the loop in which the others hold.
std::uint64_t HomeCall::left_at_home(std::uint32_t region) const {
  WorkSharing* const loops = node_.work_sharing();
  const Progress& held_at = halted_.bodies[called_.front().node.value].progress;
  return loops != nullptr ? loops->left_at_home(region, held_at.loops) : 0;
}

bool HomeCall::all_hold(std::uint32_t region) {
  const auto holds = [this](const NodeShare& share) {
    return halted_.bodies[share.node.value].held != 0;
  };
  return !called_.empty() && await(region, kAnswer, [&] { return halted_.have_come(called_); }) &&
         std::ranges::all_of(called_, holds);
}

bool HomeCall::take() {
  Phase phase = Phase::kHeld;
  if (!phase_.compare_exchange_strong(phase, Phase::kTaking, std::memory_order_acq_rel)) {
    return false;
  }
  const Progress own = node_.team().progress();
  const std::uint32_t region = node_.team().region();
  Doacross* const doacross = node_.doacross();
  Turns* const turns = node_.turns();
  const bool has_doacross = doacross != nullptr && doacross->is_open(region, own.doacrosses);
  const bool has_ordered = turns != nullptr && turns->is_open(region, own.loops);
  const auto is_in_step = [&](const NodeShare& share) {
    const HaltedBody& halted = halted_.bodies[share.node.value];
    // How far a loop has come is not known any more where all have left it.
    return halted.progress == own && (halted.in_doacross == 0 || has_doacross) &&
           (halted.in_ordered == 0 || has_ordered);
  };
  WorkSharing* const loops = node_.work_sharing();
  const bool all_called = called_.size() + 1 == node_.team().shares().size();
  const bool in_step =
      std::ranges::all_of(called_, is_in_step) &&
      (loops == nullptr || (loops->left_at_home(region, own.loops) == 0 &&
                            // Nodes that have ended the region would not hear that it is forgotten.
                            (all_called || !loops->is_remembered(region, own.loops))));
  if (in_step) {
    tell(true);
    region_.store(0, std::memory_order_relaxed);  // there is nothing more to look at
  }
  phase_.store(in_step ? Phase::kTaken : Phase::kOutOfStep, std::memory_order_release);
  ring();
  return in_step;
}

void HomeCall::let_go() {
  Phase phase = Phase::kHeld;
  if (phase_.compare_exchange_strong(phase, Phase::kOutOfStep, std::memory_order_acq_rel)) ring();
}

void HomeCall::tell(bool goes_home) {
  const std::uint32_t number = halted_.wanted.load(std::memory_order_relaxed);
  send_to(called_, kVerdictMessage, VerdictBody{number, goes_home ? 1U : 0U});
}

template <typename Body>
void HomeCall::send_to(std::span<const NodeShare> nodes, fabric::MessageType type,
                       const Body& body) {
  for (const NodeShare& share : nodes) {
    (void)node_.fabric().send(share.node, type, fabric::bytes_of(body), {});
  }
}

// False: the time is over, or the region.
template <typename Ready>
bool HomeCall::await(std::uint32_t region, Nanos patience, Ready ready) {
  const Nanos end = os::monotonic_now() + patience;
  for (;;) {
    const std::uint32_t news = news_.load(std::memory_order_acquire);
    if (ready()) return true;
    const Nanos left = end - os::monotonic_now();
    const bool over = region_.load(std::memory_order_acquire) != region;
    if (left <= 0 || over || stopping_.load(std::memory_order_relaxed)) return false;
    os::futex_wait(news_, news, left);
  }
}

template <typename Body>
bool HomeCall::Answers<Body>::have_come(std::span<const NodeShare> nodes) const {
  return std::ranges::all_of(nodes, [this](const NodeShare& share) {
    return numbers[share.node.value].load(std::memory_order_acquire) ==
           wanted.load(std::memory_order_relaxed);
  });
}

template <typename Body>
bool HomeCall::Answers<Body>::put(NodeId from, const Body& body) {
  const std::uint32_t now = wanted.load(std::memory_order_acquire);
  if (body.number > now) return false;
  std::atomic<std::uint32_t>& number = numbers[from.value];
  const bool is_late = body.number != now || number.load(std::memory_order_relaxed) == now;
  if (is_late) return true;
  bodies[from.value] = body;
  number.store(now, std::memory_order_release);  // partner: have_come
  return true;
}

bool HomeCall::on_seen(NodeId from, const SeenBody& seen) {
  const bool good = seen_.put(from, seen);
  ring();
  return good;
}

bool HomeCall::on_halted(NodeId from, const HaltedBody& halted) {
  const bool good = halted_.put(from, halted);
  ring();
  return good;
}

}  // namespace amasia::omp
