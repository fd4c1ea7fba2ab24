// SPDX-License-Identifier: Apache-2.0
// The sharing model's part about single nodes other than the origin.
#include <algorithm>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

// A node has to promise so much of what is best otherwise: its data have to move first, and what
// serial code takes back from it is not known. Less, where it has kept its promise before.
constexpr double kWorthMoving = 0.9, kWorthMovingAgain = 0.97;
// Much more, of a node that is not known to be faster: the promise rests on one execution or two,
// in which the origin may have been disturbed, and has served pages; so what it takes alone has to
// have been measured.
constexpr double kWorthMovingUnknown = 0.5, kFaster = 1.1;
// It goes back for more than noise.
constexpr double kTolerance = 1.03;
constexpr double kNewWeight = 0.5;
// What a late execution may count more than the others, as one may take long for its own reasons.
constexpr double kMostAtOnce = 1.25;
constexpr std::uint32_t kMostVainMoves = 16;

}  // namespace

void SharingModel::set_core_speeds(std::span<const double> speeds) {
  AMASIA_CHECK(speeds.size() == node_count_, "there is a speed for each node");
  for (std::size_t i = 0; i < node_count_; ++i) single_[i].core_speed = speeds[i];
}

void SharingModel::set_throughputs(std::span<const double> throughputs) {
  AMASIA_CHECK(throughputs.size() == node_count_, "there is a throughput for each node");
  for (std::size_t i = 0; i < node_count_; ++i) single_[i].throughput = throughputs[i];
}

bool SharingModel::is_known_faster(std::size_t node) const {
  AMASIA_CHECK(node < node_count_, "it is one of the job's nodes");
  return single_[node].throughput > kFaster * single_[0].throughput;
}

std::optional<double> SharingModel::misses_per_kilo() const {
  if (instructions_ <= 0) return std::nullopt;
  return 1000 * cache_misses_ / instructions_;
}

void SharingModel::note_nodes(std::span<const RegionPart> nodes, bool first) {
  for (std::size_t i = 0; i < node_count_; ++i) {
    const RegionPart& node = nodes[i];
    cache_misses_ += static_cast<double>(node.cache_misses);
    instructions_ += static_cast<double>(node.instructions);
    if (node.threads == 0 || node.work <= 0 || node.busy <= 0) continue;
    const double latest = static_cast<double>(node.busy) / node.work;
    single_[i].part = node.work;
    double& alone = single_[i].alone_ns;
    const bool is_new = first || alone <= 0;
    alone = is_new ? latest
                   : alone + kNewWeight * (std::min(latest, kMostAtOnce * alone) - alone);
  }
}

// True: the next executions are another node's, which promises much against the best known way.
bool SharingModel::move_elsewhere() {
  if (!may_move_ || !divisible_ || beginnings_ < next_move_) return false;
  const bool shared_is_better =
      findings_.alone <= 0 || findings_.shared < findings_.alone;
  const double best = shared_is_better ? findings_.shared : findings_.alone;
  const auto nodes = std::span(single_).first(node_count_);
  // Of the nodes that are forked and joined now only one remains to be.
  const auto others = static_cast<double>(std::max<std::size_t>(nodes_in_use(), 2) - 1);
  const double rest = findings_.rest / others;
  std::size_t chosen = 0;
  double least = best;
  for (std::size_t i = 1; i < node_count_; ++i) {
    const bool known = findings_.elsewhere > 0 && findings_.elsewhere_node == i;
    const double alone = alone_on(nodes, i, misses_per_kilo());
    const double time = known ? findings_.elsewhere : alone + rest;
    const double worth = known ? kWorthMovingAgain : kWorthMoving;
    if (alone <= 0 || time >= std::min(least, worth * best)) continue;
    const bool is_tried = findings_.tried_alone && time < kWorthMovingUnknown * best;
    if (!known && !is_known_faster(i) && !is_tried) continue;
    least = time;
    chosen = i;
  }
  if (chosen == 0) return false;
  alternative_ = best;
  cost_of_trying_ = std::max(0.0, tried_ - 2 * least);
  alternative_is_shared_ = shared_is_better;
  patience_ = std::min(patience_ * 2, 1e6);
  tried_before_ = true;
  move_to(chosen);
  return true;
}

void SharingModel::move_to(std::size_t node) {
  AMASIA_CHECK(node > 0 && node < node_count_, "it is another node than the origin");
  AMASIA_CHECK(may_move_, "its loops can be another node's");
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (rates_[i] <= 0) rates_[i] = powers_[i];
  }
  powers_before_ = powers_;
  powers_.fill(0);
  powers_[node] = 1;
  ++version_;
  window_ = {};
  charged_since_ = 0;
  spent_alone_ = 0;
  findings_.elsewhere = 0;
  findings_.elsewhere_node = node;
  enter(Phase::kElsewhere);
}

void SharingModel::observe_elsewhere(Nanos elapsed) {
  const double time = static_cast<double>(elapsed) + charged_since_;
  charged_since_ = 0;
  ++runs_in_phase_;
  if (rule_ == Rule::kThreshold) return;  // whose decisions are for good
  // In the first one the data come.
  if (runs_in_phase_ == 1) {
    cost_of_trying_ += time;
    return;
  }
  double& found = findings_.elsewhere;
  found = found > 0 ? found + kNewWeight * (std::min(time, kMostAtOnce * found) - found) : time;
  if (gathered_) return;
  const bool in_vain = runs_in_phase_ == 2 && found > kTolerance * alternative_;
  const double loss = found - kTolerance * alternative_;
  if (in_vain || has_lost(loss, loss, alternative_)) return come_back();
  spent_alone_ += time;
  if (spent_alone_ * kBudget >= cost_of_trying_ * patience_) start_over();
}

bool SharingModel::may_gather() const {
  const bool settled = phase_ == Phase::kAlone || (phase_ == Phase::kElsewhere && !gathered_);
  return settled && rule_ == Rule::kPrediction && may_move_ && divisible_;
}

double SharingModel::promise(std::size_t node, double here) const {
  AMASIA_CHECK(node < node_count_, "it is one of the job's nodes");
  const bool measured = here > 0;
  if (!measured) here = findings_.alone;
  if (node == 0) return here;
  const auto nodes = std::span(single_).first(node_count_);
  double there = alone_on(nodes, node, misses_per_kilo());
  const double origin = alone_on(nodes, 0, misses_per_kilo());
  // Both tell of computing only. What is waited for here, since others have the data, is waited for
  // there, too, as far as anybody knows.
  if (there > 0 && origin > 0 && here > 0) there = here * there / origin;
  // Of a node whose cores are not known to be faster all that is known must say so.
  if (measured && there > 0 && !is_known_faster(node)) {
    there = std::max(there, alone_by_rest(nodes, node, here));
  }
  if (there <= 0 || here <= 0 || single_[node].throughput <= 0) return there;
  return std::min(there, here * single_[0].throughput / single_[node].throughput);
}

void SharingModel::gather_to(std::size_t node) {
  AMASIA_CHECK(may_gather(), "it is one node's and could be another's");
  if (phase_ == Phase::kElsewhere) powers_ = powers_before_;
  move_to(node);
  gathered_ = true;
}

void SharingModel::scatter() {
  AMASIA_CHECK(gathered_, "it was gathered");
  gathered_ = false;
  powers_ = powers_before_;
  ++version_;
  spent_alone_ = 0;
  enter(Phase::kAlone);
}

void SharingModel::come_back() {
  vain_moves_ = std::min(vain_moves_ + 1, kMostVainMoves);
  next_move_ = beginnings_ + (1u << vain_moves_);
  powers_ = powers_before_;
  ++version_;
  window_ = {};
  if (!alternative_is_shared_) return go_alone();
  findings_of_ = 0;  // its data come back first
  enter(Phase::kWarm);
}

}  // namespace amasia::loops
