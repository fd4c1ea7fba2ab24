// SPDX-License-Identifier: Apache-2.0
// The sharing model's part about how much of a shared region each node does.
#include <algorithm>
#include <cmath>
#include <utility>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

// Shares are moved for an imbalance beyond this, ...
constexpr double kImbalance = 1.03, kStriking = 1.3;
// Of the executions that shares are judged by, so many that take long are no exceptions.
constexpr double kOftenLong = 0.15;
// ... which pays back what the data take that follow, so many times over, in as many executions as
// there have been.
constexpr double kPaysBack = 2;
// Of what data cost that came first, a move is taken to cost at least so many times the root of its
// part, and no more than all of it: each seam costs something wherever it goes.
constexpr double kSeams = 2;
// What seams that are coarse put out of balance, of what the loops compute; about.
constexpr double kCoarseCosts = 1.0 / 16;
constexpr std::uint32_t kLongestWindow = 32, kSettlingRuns = 2;
// Data still come while what all nodes wait for is that much less than in the execution before (in
// the second one of all, that much), and one of them so much of this one; in so many executions in
// a row at most.
constexpr double kStallFalls = 1.25, kFirstFalls = 1.05, kNoStall = 0.1;
constexpr std::uint32_t kMostSettling = 8;
// After a move that was for the worse.
constexpr std::uint32_t kLongestWaryWindow = 256;
// Another program may have a core for some milliseconds: no reason to move what is done in less.
constexpr double kLongEnough = 10 * base::kMillisecond;
constexpr std::uint32_t kOftenEnough = 4;
// What the origin waits for others that have ended already.
constexpr Nanos kNoWait = 2 * base::kMicrosecond;
// Of a lag, after some executions in which the origin was always the last.
constexpr double kRemembered = 0.8;
// Of what a part takes.
constexpr double kMostLag = 0.5;
// So much more than without lags an execution is to take for seams to shift.
constexpr double kShift = 1.02;

}  // namespace

double SharingModel::Recent::median_with(double latest) {
  values[count++ % values.size()] = latest;
  auto sorted = values;
  const auto known = static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, sorted.size()));
  const auto middle = sorted.begin() + (known - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + known);
  return *middle;
}

// Under a quota of CPU time one execution out of a few stands still for all of them: the median, by
// itself, would take a node for as fast as it is in between.
double SharingModel::Window::time_of(std::size_t node) const {
  const bool is_rule = bursts[node] >= 2 && long_runs[node] >= kOftenLong * runs;
  return is_rule ? whole[node] : time[node];
}

void SharingModel::Window::note_length(std::size_t node, bool is_long) {
  if (std::exchange(was_long[node], is_long) < is_long) ++bursts[node];
  if (is_long) ++long_runs[node];
}

// Whether the last move is still to show what it is worth. One for the worse is undone.
bool SharingModel::is_move_open(double elapsed) {
  if (std::exchange(trial_of_, version_) != version_) move_trial_ = {};
  const MoveTrial::Verdict verdict = move_trial_.note(elapsed, elapsed + others_);
  if (verdict == MoveTrial::Verdict::kWorse) undo_move();
  return verdict == MoveTrial::Verdict::kOpen || verdict == MoveTrial::Verdict::kWorse;
}

void SharingModel::undo_move() {
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (powers_before_move_[i] > 0) rates_[i] = powers_before_move_[i];
  }
  powers_ = powers_before_move_;
  trial_of_ = ++version_;
  const std::uint32_t length = std::min(4 * window_.length, kLongestWaryWindow);
  window_ = {};
  window_.length = length;
  window_.settling = kSettlingRuns;
}

// The origin begins its part as soon as the others have been told of theirs, and is told of their
// ends: over a slow link that takes as long as a part. Where the origin had to wait for a node what
// that one took less than the origin is its lag.
void SharingModel::note_lags(std::span<const RegionPart> nodes) {
  const RegionPart& origin = nodes[0];
  std::size_t last = 0;
  for (std::size_t i = 1; i < node_count_; ++i) {
    if (nodes[i].threads == 0) continue;
    if (last == 0 || nodes[i].whole() > nodes[last].whole()) last = i;
  }
  if (last == 0 || origin.threads == 0 || origin.joining <= kNoWait) return;
  Lag& lag = lags_[last];
  lag.ns = lag.recent.median_with(std::max(0.0, origin.whole() - nodes[last].whole()));
  lag.is_fresh = true;
}

// After the first execution, before data have come to their nodes, so that none have to move for it
// later. `alone`: what an execution takes on the origin.
void SharingModel::heed_lags(double alone) {
  if (!divisible_ || alone <= 0 || std::exchange(heeds_lags_, true)) return;
  std::array<double, base::kMaxNodes> rates{};
  double sum = 0, power = 0;
  for (std::size_t i = 0; i < node_count_; ++i) {
    rates[i] = powers_[i] / powers_[0] / alone;
    sum += rates[i];
    power += powers_[i];
  }
  const double end = end_of(1, std::span(rates).first(node_count_));
  if (end <= kShift / sum) return;
  for (std::size_t i = 0; i < node_count_; ++i) {
    powers_[i] = rates[i] * (end - lag_of(i, 1 / sum)) * power;
  }
  ++version_;
  shifts_ = true;
}

// Where the origin is always the last, it may wait for less by now: that is found out by giving the
// others more.
void SharingModel::forget_lags() {
  for (Lag& lag : std::span(lags_).first(node_count_)) {
    if (!std::exchange(lag.is_fresh, false)) lag.ns *= kRemembered;
  }
}

void SharingModel::set_round_trips(std::span<const double> ns) {
  AMASIA_CHECK(ns.size() == node_count_, "there is a round trip for each node");
  for (std::size_t i = 1; i < node_count_; ++i) lags_[i].ns = ns[i];
}

// The parts with which all end at once are rate_i * (end - lag_i), in work by ns.
double SharingModel::end_of(double work, std::span<const double> rates) const {
  double sum = 0, lagging = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) sum += rates[i];
  for (std::size_t i = 0; i < rates.size(); ++i) lagging += rates[i] * lag_of(i, work / sum);
  return (work + lagging) / sum;
}

// Far nodes have a part, too.
double SharingModel::lag_of(std::size_t node, double balanced) const {
  return std::min(lags_[node].ns, kMostLag * balanced);
}

// `moved`: what part of the work would be another node's.
bool SharingModel::is_worth_moving(double imbalance, double moved) const {
  const bool striking = imbalance > kStriking;
  // The others' data would move, too, and they would do it back: for much only, and on trial.
  if (others_ > 0) return striking && move_trial_.is_ready();
  const double gain = (imbalance - 1) * findings_.balanced * findings_of_;
  const double guessed = striking ? 0 : first_stalls_ * std::min(1.0, kSeams * std::sqrt(moved));
  const double cost = std::max(guessed, move_cost_.expected(moved));
  return imbalance > kImbalance && gain > kPaysBack * cost;
}

// A seam within a page costs a fault in each execution, or several. The brief regions for which
// that is much keep theirs where data have come.
void SharingModel::choose_seam(std::span<const RegionPart> nodes, double computing) {
  double stall = 0, faults = 0;
  for (const RegionPart& node : nodes) {
    stall += static_cast<double>(node.stall) * node.threads;
    faults += static_cast<double>(node.faults);
  }
  const bool coarse = faults > 0 && stall / faults > kCoarseCosts * computing;
  const Seam seam = coarse ? Seam::kCoarse : Seam::kFine;
  if (std::exchange(seam_, seam) != seam) ++version_;
}

// Whether data are still on the way to their nodes, as each execution waits for less of them than
// the one before. With many nodes that takes longer than the executions that never count.
void SharingModel::note_data(std::span<const RegionPart> nodes, double longest,
                             double elapsed) {
  double stalls = 0;
  for (const RegionPart& node : nodes) stalls += static_cast<double>(node.stall);
  const double fall = phase_ == Phase::kWarm ? kFirstFalls : kStallFalls;
  const bool comes = fall * stalls < stalls_before_ && longest > kNoStall * elapsed;
  stalls_before_ = stalls;
  if (phase_ == Phase::kWarm) first_stalls_ += longest;
  data_run_ = comes ? data_run_ + 1 : 0;
  data_come_ = comes && data_run_ <= kMostSettling;
}

// Data follow a share that has moved: what they cost then is no reason to move it back.
bool SharingModel::tells_of_shares(double elapsed) {
  move_cost_.note(elapsed, is_settling());
  if (window_.settling == 0) return !data_come_;
  --window_.settling;
  return false;
}

// Data follow it in as many executions as there are arrays that take turns. While finding out, one
// after them is to tell; for the first move only, as shares that never settle will not.
void SharingModel::give_time_to_follow() {
  if (phase_ != Phase::kWarm || most_warm_runs_ > kMostWarmRuns) return;
  most_warm_runs_ = std::max(most_warm_runs_, runs_in_phase_ + kSettlingRuns + 1);
}

// By sums over executions since the last change, more of them each time: single times vary, and a
// share that moves takes its data along.
void SharingModel::rebalance(std::span<const RegionPart> nodes, double elapsed) {
  if (!tells_of_shares(elapsed)) return;
  note_lags(nodes);
  std::array<double, base::kMaxNodes> rates{};
  double sum = 0, work = 0, known = 0;
  ++window_.runs;
  window_.elapsed += elapsed;
  for (std::size_t i = 0; i < node_count_; ++i) {
    const RegionPart& node = nodes[i];
    if (node.threads == 0) continue;
    if (node.work > 0) {
      const double latest = node.time() / node.work;
      const double median = recent_[i].median_with(latest);
      window_.work[i] += node.work;
      // The first of all has nothing to be held against before there are others.
      const Recent& recent = recent_[i];
      const bool is_all = window_.runs == recent.count && recent.count <= recent.values.size();
      window_.time[i] = is_all ? median * window_.work[i] : window_.time[i] + median * node.work;
      window_.whole[i] += node.time();
      window_.note_length(i, latest > kStriking * median);
    }
    if (window_.work[i] <= 0 || window_.time[i] <= 0) continue;
    rates[i] = window_.work[i] / window_.time_of(i);
    sum += rates[i];
    work += window_.work[i];
    known += powers_[i];
  }
  if (sum <= 0 || is_move_open(elapsed)) return;
  work /= window_.runs;
  const double end = end_of(work, std::span(rates).first(node_count_));
  double slowest = 0;
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (rates[i] <= 0) continue;
    slowest = std::max(slowest, window_.time_of(i) / window_.runs + lag_of(i, work / sum));
  }
  const double imbalance = slowest / end;
  const bool soon = imbalance > kStriking && !move_trial_.is_wary();
  const bool due = window_.runs >= window_.length || (window_.runs > 1 && soon);
  const bool tells = window_.elapsed >= kLongEnough || window_.runs >= kOftenEnough;
  if (!due || !tells) return;
  std::array<double, base::kMaxNodes> balanced = powers_;
  double moved = 0;
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (rates[i] <= 0) continue;
    balanced[i] = rates[i] * (end - lag_of(i, work / sum)) / work * known;
    moved += std::abs(balanced[i] - powers_[i]) / 2 / known;
  }
  const bool moves = is_worth_moving(imbalance, moved);
  if (moves) {
    powers_before_move_ = powers_;
    move_cost_.move(move_trial_.step() * moved, window_.elapsed / window_.runs);
    for (std::size_t i = 0; i < node_count_; ++i) {
      powers_[i] += move_trial_.step() * (balanced[i] - powers_[i]);
      if (window_.time[i] > 0) rates_[i] = powers_[i];
    }
    move_trial_.move();
    trial_of_ = ++version_;
    give_time_to_follow();
  }
  forget_lags();
  const std::uint32_t longer = std::min(2 * window_.length, kLongestWindow);
  const std::uint32_t length = std::max(longer, window_.length);
  window_ = {};
  window_.length = moves ? std::min(length, kLongestWindow) : length;
  if (moves) window_.settling = kSettlingRuns;
}

}  // namespace amasia::loops
