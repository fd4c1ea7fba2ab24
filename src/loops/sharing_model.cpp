// SPDX-License-Identifier: Apache-2.0
#include "loops/sharing_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "loops/probe_cache.hpp"

namespace amasia::loops {
namespace {

// A first execution that takes so many times what it would alone is not repeated at once: data that
// come to stay are seldom that dear. Unless the loss is small: then it is cheap to be sure.
constexpr double kBeyondHope = 6;
constexpr double kSmallLoss = 200 * base::kMicrosecond;
// Nor is one that costs more than may be lost, if the origin waits so much of it for its own data.
constexpr double kToAndFro = 0.25;
// Where it waits for less than that, data only leave it.
constexpr double kOneWay = 0.2;
// While data come for which a node waits that much of an execution, it says nothing about shares.
constexpr double kMostlyWaits = 0.5;
// What is less dear than this is noise.
constexpr double kTolerance = 1.03;
// What may be lost before a region goes back, at least, in executions.
constexpr double kLeastLoss = 1;
// What an execution that takes long counts for by itself, in times of what it would alone.
constexpr double kMostLoss = 2;
constexpr double kMostAtOnce = 1.25, kSmall = 10 * base::kMicrosecond;
constexpr double kNewWeight = 0.5;  // of the latest execution in an average
// What waiting for pages adds to a node's computing (sharing_trial.cpp), of its own wait, at most.
constexpr double kMostServing = 3;
// Data still come while each execution takes that much less than the one before.
constexpr double kSettling = 1.5, kComing = 1.33, kFalling = 1.1;
// Data that follow a share that has moved do not make two executions in a row take so many times
// what they would alone.
constexpr double kNotSettling = 3;
// Executions that are not judged as loops still find out their shares, and what they may take, as
// may those in which data still come, in times of what they would alone.
constexpr std::uint32_t kMostMoves = ProbeCache::kProbes;
constexpr double kMostMoving = 3, kMostComing = 4;
// In how many more executions what falls as it did last would take no longer than alone.
constexpr double kMostToCome = 3;
// An execution of which the origin did so much tells what it takes alone, if later ones of which it
// did less come to about that in sum.
constexpr double kMostOfIt = 0.75, kInAgreement = 1.25;

// Halving what is 0 from now on ends in numbers that the processor handles a hundred times more
// slowly.
double mix(double old, double now) {
  const double mixed = old + kNewWeight * (now - old);
  return std::abs(mixed) < std::numeric_limits<double>::min() ? 0 : mixed;
}

}  // namespace

// What one execution says, in ns.
struct SharingModel::Judgement {
  double alone = 0;  // 0: the origin did nothing, so it cannot be said
  double alone_by_all = 0;
  double alone_at_least = 0;  // however much of the computing there was for waiting only
  double elapsed = 0, rest = 0, stall = 0;
  double balanced = 0;   // with all nodes' times equal
  double computing = 0;  // the same if there were no stall, and without the rest
};

SharingModel::SharingModel(std::span<const double> powers, Rule rule)
    : node_count_(powers.size()), rule_(rule) {
  AMASIA_CHECK(node_count_ > 0 && node_count_ <= base::kMaxNodes, "a job has 1 to kMaxNodes nodes");
  std::copy(powers.begin(), powers.end(), powers_.begin());
  for (std::size_t i = 0; i < node_count_; ++i) single_[i] = {0, powers[i], powers[i]};
  AMASIA_CHECK(powers[0] > 0, "the origin takes part in what is shared");
}

void SharingModel::set_break_even(std::span<const double> ns_per_fault) {
  AMASIA_CHECK(ns_per_fault.size() == node_count_, "there is a break-even for each node");
  std::copy(ns_per_fault.begin(), ns_per_fault.end(), break_even_.begin());
}

void SharingModel::apply_threshold(std::span<const RegionPart> nodes) {
  constexpr std::uint64_t kProbes = 10;
  if (phase_ != Phase::kShared) {
    // The first execution brings data to their nodes; later ones have the more weight.
    for (std::size_t i = 1; i < node_count_; ++i) {
      const RegionPart& node = nodes[i];
      if (node.threads == 0) continue;
      const double all = node.time() * node.threads;
      const double period = all / static_cast<double>(std::max<std::uint64_t>(node.faults, 1));
      fault_period_[i] = fault_period_[i] > 0 ? mix(fault_period_[i], period) : period;
    }
  }
  if (runs_in_phase_ < 2) return;
  bool any = false;
  for (std::size_t i = 1; i < node_count_; ++i) {
    const bool pays = fault_period_[i] >= break_even_[i];
    if (powers_[i] > 0 && !pays) {
      powers_[i] = 0;
      ++version_;
    }
    any = any || powers_[i] > 0;
  }
  if (!any) {
    const std::size_t node =
        choose_by_counters(std::span(single_).first(node_count_), misses_per_kilo());
    if (node == 0 || !may_move_ || !divisible_) return enter(Phase::kAlone);
    return move_to(node);
  }
  if (runs_in_phase_ >= kProbes && phase_ != Phase::kShared) enter(Phase::kShared);
}

SharingModel::Judgement SharingModel::judge(std::span<const RegionPart> nodes,
                                            Nanos elapsed) const {
  Judgement now;
  now.elapsed = static_cast<double>(elapsed);
  std::array<double, base::kMaxNodes> rates{};
  double sum = 0, busy_rates = 0, longest = 0, work = 0;
  // What a node waits for others serve meanwhile, on the cores that compute.
  const auto least_busy = [&nodes](const RegionPart& node) {
    Nanos served = 0;
    for (const RegionPart& other : nodes) {
      if (&other != &node) served = std::max(served, other.stall);
    }
    const double waiting = kMostServing * static_cast<double>(node.stall);
    return std::max(0.0, static_cast<double>(node.busy - served) - waiting);
  };
  for (const RegionPart& node : nodes) {
    if (node.threads == 0) continue;
    longest = std::max(longest, node.time());
    const auto i = static_cast<std::size_t>(&node - nodes.data());
    const double speed = single_[i].throughput / single_[0].throughput;
    now.alone_by_all += static_cast<double>(node.busy) * speed;
    now.alone_at_least += least_busy(node) * speed;
    now.stall = std::max(now.stall, static_cast<double>(node.stall));
    if (node.work > 0 && node.time() > 0) {
      rates[i] = node.work / node.time();
      sum += rates[i];
      busy_rates += node.work / std::max(1.0, static_cast<double>(node.busy));
      work += node.work;
    }
  }
  if (busy_rates > 0) now.computing = work / busy_rates;
  if (nodes[0].work > 0) {
    now.alone = static_cast<double>(nodes[0].busy) / nodes[0].work;
    now.alone_at_least = std::min(now.alone_at_least, least_busy(nodes[0]) / nodes[0].work);
  }
  now.rest = std::max(0.0, now.elapsed - longest);
  now.balanced = now.elapsed;
  if (sum <= 0) return now;
  // What of the rest is a node's lag is in its end.
  double end = 0, lag = 0;
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (rates[i] <= 0) continue;
    end = std::max(end, nodes[i].time() + lag_of(i, work / sum));
    lag = std::max(lag, lag_of(i, work / sum));
  }
  const double rest = std::max(0.0, now.elapsed - end);
  now.balanced = std::min(end_of(work, std::span(rates).first(node_count_)) + rest, now.elapsed);
  now.rest = std::max(now.rest, lag);
  return now;
}

// One execution decides, and threads that the system woke late once are no reason against sharing:
// what forks and joins take is the least of those seen while finding out. What they often take in
// addition will be seen, and lost at most once, if that is too much.
void SharingModel::forget_late_fork(Judgement& now) {
  const bool is_first = phase_ == Phase::kCold || runs_in_phase_ == 1;
  least_elapsed_ = is_first ? now.elapsed : std::min(least_elapsed_, now.elapsed);
  least_rest_ = phase_ == Phase::kCold ? now.rest : std::min(least_rest_, now.rest);
  now.balanced -= now.rest - least_rest_;
  now.rest = least_rest_;
}

void SharingModel::note(const Judgement& now) {
  const bool first = findings_of_++ == 0;
  // One execution out of many may take long for reasons of its own, so it counts for at most so
  // much more than the others; a change that lasts is noticed nevertheless.
  const auto average_up_to = [first](double most, double& value, double latest) {
    value = first ? latest : mix(value, std::min(latest, most));
  };
  const auto average = [&average_up_to](double& value, double latest) {
    average_up_to(kMostAtOnce * value + kSmall, value, latest);
  };
  if (now.alone > 0) {
    if (predicted_ > 0) {
      const double off = std::min(std::abs(now.alone / predicted_ - 1),
                                  std::abs(now.alone_by_all / std::max(1.0, alone_by_all_) - 1));
      spread_ = first ? off : mix(spread_, off);
    }
    if (predicted_ <= 0) predicted_ = now.alone;
    average(predicted_, now.alone);
    findings_.alone = predicted_ * measured_by_predicted_;
    average(alone_by_all_, now.alone_by_all);
  }
  average(findings_.stall, now.stall);
  // It comes beside an execution: what is little of that may be many times what came before.
  const double most_charged =
      findings_.charged + (kMostAtOnce - 1) * findings_.balanced + kSmall;
  average_up_to(most_charged, findings_.charged, charged_since_);
  average(findings_.rest, now.rest);
  average(findings_.balanced, now.balanced);
  average(without_stall_, now.computing + now.rest);
  average(computing_, now.computing);
  findings_.shared = findings_.balanced + findings_.charged;
  charged_since_ = 0;
}

// While data come to the nodes, or follow a share that has moved, times are not those of the share.
void SharingModel::note_variation(std::span<const RegionPart> nodes, double elapsed) {
  if (std::exchange(variation_of_, version_) != version_) variation_.restart();
  if (phase_ == Phase::kShared && !is_settling()) {
    std::array<Variation::Part, base::kMaxNodes> parts{};
    for (std::size_t i = 0; i < node_count_; ++i) {
      if (nodes[i].threads != 0) parts[i] = {nodes[i].work, nodes[i].time()};
    }
    variation_.note(std::span(parts).first(node_count_), elapsed);
  }
  findings_.balanced = std::max(findings_.balanced, variation_.expected());
  findings_.shared = findings_.balanced + findings_.charged;
}

void SharingModel::enter(Phase phase) {
  phase_ = phase;
  runs_in_phase_ = 0;
  lost_ = lost_as_seen_ = 0;
  trial_time_ = longest_trial_ = doubt_ = doubted_ = 0;
  trial_runs_ = 0;
}

void SharingModel::go_alone() {
  enter(Phase::kAlone);
  spent_alone_ = 0;
  patience_ = std::min(patience_ * 2, 1e6);
  tried_before_ = true;
}

void SharingModel::begin_alone(double until_retried) {
  AMASIA_CHECK(phase_ == Phase::kCold && runs_in_phase_ == 0, "it has not run yet");
  go_alone();
  cost_of_trying_ = until_retried * kBudget / patience_;
}

double SharingModel::until_retried() const {
  if (phase_ != Phase::kAlone) return 0;
  return std::max(0.0, cost_of_trying_ * patience_ / kBudget - spent_alone_);
}

void SharingModel::decide_when_cold(const Judgement& now, const RegionPart& origin) {
  cost_of_trying_ = std::max(0.0, now.elapsed - now.alone);
  tried_ = now.elapsed;
  first_stalls_ = now.stall;
  // Shares out of balance will be mended; pages that travel are what may not. Nor does it say much
  // how long the first fork takes, for which code comes, and threads begin.
  const double expected = now.computing + now.stall;
  const double alone = std::max(now.alone, now.alone_by_all);
  const bool beyond_hope =
      now.alone > 0 && expected > kBeyondHope * alone && expected - alone > kSmallLoss;
  // The origin has its data where they are, so what it waits for others have taken, and take again.
  const bool to_and_fro = static_cast<double>(origin.stall) > kToAndFro * now.elapsed;
  const bool dear = to_and_fro && cost_of_trying_ > allowance_;
  if (!dear && (!beyond_hope || tried_before_)) return enter(Phase::kWarm);
  if (move_elsewhere()) return;
  // The next time data may turn out to stay, if it is given the time.
  cost_of_trying_ *= 2;
  go_alone();
}

// Loops that find out their shares move data in each execution until these are settled: what that
// takes says nothing about later ones, unless it is dear, or never ends.
bool SharingModel::follow_moves(bool moves) {
  const double least = least_alone();
  if (!moves || moves_ == kMostMoves || latest_.elapsed > kMostMoving * least) return false;
  ++moves_;
  return true;
}

bool SharingModel::did_most_before() const {
  return did_most_ > 0 && did_most_ <= kInAgreement * alone_by_all_;
}

double SharingModel::least_alone() const {
  const double least = std::min(findings_.alone, alone_by_all_);
  return did_most_before() ? std::max(least, std::min(did_most_, alone_by_all_)) : least;
}

void SharingModel::decide_when_warm(std::span<const RegionPart> nodes, bool settles, bool moves) {
  // Where iterations are unlike, the origin's part says too little or too much of the whole; the
  // sum of all parts does so where cores are not as fast as they are thought to be.
  const double least = least_alone(), most = std::max(findings_.alone, alone_by_all_);
  const auto pays = [this, least] {
    return findings_.alone <= 0 || findings_.shared < kClearGain * least;
  };
  // Where executions take turns with two arrays, the second one brings data, too; and who has read
  // ahead beyond its part has taken pages that their writer wants back in a later one.
  const bool promises = least_elapsed_ < least || without_stall_ < kClearGain * least;
  // Data that only leave the origin may come to stay, and it is not held up by them.
  // Where it has done most of the first execution they leave it in the second one.
  const bool begin_to_leave =
      runs_in_phase_ == 1 && did_most_before() && nodes[0].work < kMostOfIt;
  const bool leave =
      begin_to_leave || static_cast<double>(nodes[0].stall) < kOneWay * latest_.elapsed;
  const double most_elapsed =
      (leave ? kMostComing : comes_ || shifts_ ? kMostMoving : kMostLoss) * least;
  const bool soon = latest_.elapsed - least < kMostToCome * fell_by_;
  const bool comes_on = data_come_ && soon && latest_.elapsed < kMostComing * most;
  // One that takes much longer than the one before may have been disturbed.
  const bool is_disturbed =
      jumps_ && runs_in_phase_ > 1 && latest_.elapsed < kBeyondHope * most;
  // The first one with its seams where they will stay has more data to fetch than others.
  const bool is_shifted =
      shifts_ && runs_in_phase_ == 1 && latest_.elapsed < kMostMoving * least;
  const bool would_pay =
      (comes_on || is_disturbed || is_shifted) && computing_ < kClearGain * least;
  const bool may_yet_pay = settles || would_pay || (promises && latest_.elapsed < most_elapsed);
  const bool affordable = latest_.elapsed + findings_.charged - least <= allowance_;
  const bool goes_on = moves || (may_yet_pay && runs_in_phase_ < most_warm_runs_);
  if (!pays() && goes_on && affordable) return;
  leave_out_costly(nodes);
  if (move_elsewhere()) return;
  if (pays()) {
    patience_ = 1;
    return enter(Phase::kShared);
  }
  if (findings_.shared > kClearLoss * most) return go_alone();
  enter(Phase::kTrial);
}

void SharingModel::decide_when_shared(const Judgement& now, const Latest& before) {
  // An average in which one execution counts for little is slow to see that all has changed: the
  // regions that had the data spread have gone back to the origin.
  const double twice = std::min(latest_.waiting, before.waiting);
  const bool counts = !is_settling() || twice > kNotSettling * findings_.alone;
  const double took = counts ? std::max(twice, findings_.shared) : findings_.shared;
  // One that takes ten times as long is one, whatever averages make of it; and where work varies
  // each is held against its own.
  const double own = now.alone > 0 ? now.alone * measured_by_predicted_ : findings_.alone;
  const double lasting = std::min(now.elapsed, before.elapsed);
  const double seen = std::max(lasting, std::min(now.elapsed, kMostLoss * own));
  const bool lost = has_lost(took - kTolerance * findings_.alone,
                             seen + findings_.charged - kTolerance * own, findings_.alone);
  if (findings_.alone > 0 && lost && !move_elsewhere()) {
    // What it takes alone may be the word of the origin's part only, which others contradict.
    const double most = std::max(findings_.alone, alone_by_all_);
    if (findings_.tried_alone || took > kClearLoss * most) return go_alone();
    return doubt(took);
  }
  if (phase_ != Phase::kShared) return;
  note_waiting(now.elapsed, now.stall, now.alone_at_least);
  if (is_doubtful()) doubt(usual());
}

void SharingModel::observe_shared(std::span<const RegionPart> nodes, Nanos elapsed, bool skewed) {
  AMASIA_CHECK(nodes.size() == node_count_, "there is a sample for each node of the job");
  AMASIA_CHECK(shares(), "what is shared was to be");
  Judgement now = judge(nodes, elapsed);
  const bool cold = phase_ == Phase::kCold;
  if (phase_ == Phase::kElsewhere) return observe_elsewhere(elapsed);
  ++runs_in_phase_;
  divisible_ = skewed;
  const bool moves = std::exchange(moves_next_, false);
  // What data cost on the way to their nodes says nothing about later executions.
  if (phase_ == Phase::kWarm) findings_of_ = 0;
  if (phase_ == Phase::kCold || phase_ == Phase::kWarm) forget_late_fork(now);
  note_nodes(nodes, findings_of_ == 0);
  note_data(nodes, now.stall, now.elapsed);
  if (cold) choose_seam(nodes, now.computing);
  if (nodes[0].work >= kMostOfIt) {
    did_most_ = std::max(did_most_, static_cast<double>(nodes[0].busy));
  }
  note(now);
  note_variation(nodes, now.elapsed);
  const Latest before =
      std::exchange(latest_, {now.elapsed, now.computing + now.stall + findings_.rest});
  const bool settles = cold || kSettling * now.elapsed < before.elapsed;
  if (with_others_) return;
  falls_ = kFalling * now.elapsed < before.elapsed;
  comes_ = kComing * now.elapsed < before.elapsed;
  jumps_ = now.elapsed > kSettling * before.elapsed;
  fell_by_ = before.elapsed - now.elapsed;
  // While nodes fetch and clear pages, each in its own way, what that says of their speeds would
  // move data that have just come.
  const bool waits = phase_ == Phase::kWarm && now.stall > kMostlyWaits * now.elapsed;
  if (skewed && !settles && !waits) rebalance(nodes, now.elapsed);
  if (cold) {
    heed_lags(std::max(now.alone, now.alone_by_all));
    most_warm_runs_ = shifts_ ? kMostWarmRuns + kShiftedRuns : kMostWarmRuns;
  }
  if (rule_ == Rule::kAlways) return enter(Phase::kShared);
  if (rule_ == Rule::kThreshold) return apply_threshold(nodes);
  switch (phase_) {
    case Phase::kCold:
      return decide_when_cold(now, nodes[0]);
    case Phase::kWarm:
      // What was charged is the execution's before, which is new in an average that began with it.
      cost_of_trying_ += std::max(0.0, now.elapsed + findings_.charged - now.alone);
      tried_ += now.elapsed + findings_.charged;
      decide_when_warm(nodes, settles && now.elapsed < kBeyondHope * now.alone,
                       follow_moves(moves));
      break;
    default:
      if (!follow_moves(moves)) decide_when_shared(now, before);
  }
  if (phase_ == Phase::kShared) drop_useless(nodes, now.rest);
}

// To try again will cost what it has cost before, so that much may be lost first: what takes longer
// for a while only, as other programs run, is no reason to go. `expected`: what this execution is
// expected to have lost against the next best; `seen`: what it did lose.
bool SharingModel::has_lost(double expected, double seen, double otherwise) {
  lost_ = std::max(0.0, lost_ + expected);
  lost_as_seen_ = std::max(0.0, lost_as_seen_ + seen);
  const double most = std::max(cost_of_trying_, kLeastLoss * otherwise);
  return lost_ > most && lost_as_seen_ > most;
}

void SharingModel::observe_alone(Nanos elapsed, Nanos stall) {
  const auto time = static_cast<double>(elapsed);
  ++runs_in_phase_;
  if (phase_ == Phase::kTrial) {
    return observe_trial(time - static_cast<double>(stall), static_cast<double>(stall));
  }
  if (phase_ != Phase::kAlone) return;  // it stayed for another reason
  if (rule_ == Rule::kThreshold) return;  // whose decisions are for good
  spent_alone_ += time;
  if (spent_alone_ * kBudget < cost_of_trying_ * patience_) return;
  start_over();
}

void SharingModel::observe_come_home(Nanos elapsed, double lost) {
  AMASIA_CHECK(probes(), "a region comes home while it is found out about");
  ++runs_in_phase_;
  moves_next_ = false;
  findings_.shared = static_cast<double>(elapsed);
  findings_.alone = std::max(0.0, findings_.shared - lost);
  cost_of_trying_ = (phase_ == Phase::kCold ? 0 : cost_of_trying_) + lost;
  go_alone();
}

void SharingModel::share_with_others(std::span<const double> powers) {
  std::copy(powers.begin(), powers.end(), powers_.begin());
  ++version_;
  variation_ = {};
  with_others_ = true;
  enter(Phase::kShared);
}

double SharingModel::promise_of_sharing(bool alone, Nanos elapsed, double part) const {
  if (findings_of_ == 0) return 0;
  const auto time = static_cast<double>(elapsed);
  return alone ? time * part + findings_.rest : std::min(time, without_stall_);
}

// All nodes share again, by the speeds that were known last.
void SharingModel::start_over() {
  set_aside_ = kBudget * spent_alone_;
  findings_of_ = 0;
  did_most_ = 0;
  shifts_ = false;
  measured_by_predicted_ = 1;
  findings_.tried_alone = false;
  most_doubt_ = kRunsInDoubt;
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (rates_[i] > 0) powers_[i] = rates_[i];
  }
  ++version_;
  window_ = {};
  recent_ = {};
  recent_elapsed_ = {};
  variation_ = {};
  moves_ = 0;
  ++beginnings_;
  enter(Phase::kCold);
}

void SharingModel::charge(Nanos stall) {
  if (shares()) {
    charged_since_ += static_cast<double>(stall);
  } else if (runs_in_phase_ == 0) {
    cost_of_trying_ += static_cast<double>(stall);  // the last shared execution's
  }
}

const char* name_of(SharingModel::Phase phase) {
  constexpr std::array<const char*, SharingModel::kPhases> kNames = {
      "cold", "warm", "trial", "shared", "alone", "elsewhere"};
  const auto index = static_cast<std::size_t>(phase);
  AMASIA_CHECK(index < kNames.size(), "every phase has a name");
  return kNames[index];
}

}  // namespace amasia::loops
