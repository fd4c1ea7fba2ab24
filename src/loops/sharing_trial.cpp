// SPDX-License-Identifier: Apache-2.0
// The sharing model's part about trying what a region takes alone, where predictions do not tell.
#include <algorithm>
#include <utility>

#include "loops/sharing_model.hpp"

namespace amasia::loops {
namespace {

// A trial decides if executions are alike, so that one can be held against another.
constexpr double kAlike = 0.2;
constexpr std::uint32_t kTrialRuns = 2, kMostTrialRuns = 5;
// Nodes that wait for pages also serve each other's, and compute with cold caches: what that adds
// to their computing nobody tells apart. So the time alone is tried, the sooner the more they wait:
// after four executions that wait for a quarter of their time, 100 that wait for a twentieth. And
// again after so many times as many each time, as what was found may no longer hold.
constexpr double kDoubtfulStall = 0.25;
constexpr double kPatience = 8, kPatienceIfClear = 100, kMostPatience = 1e6;
// An execution alone that waits for pages so much of its time still has data come.
constexpr double kComing = 0.1;
// Sharing that took about what it takes alone, less each time, is given the time to show what it
// takes when no data come any more and shares are in balance.
constexpr double kAboutAsLong = 1.1, kPromising = 0.7;

}  // namespace

void SharingModel::note_waiting(double elapsed, double stall, double alone_at_least) {
  if (is_settling()) return;
  usual_ = recent_elapsed_.median_with(elapsed);
  if (alone_at_least > findings_.shared) return;
  const double part = stall / std::max(1.0, elapsed) / kDoubtfulStall;
  doubt_ += std::min(part * part, 1.0);
}

// One disturbed execution is in what is expected for a while.
double SharingModel::usual() const {
  return std::min(findings_.shared, usual_ + findings_.charged);
}

void SharingModel::doubt(double shared) {
  enter(Phase::kTrial);
  doubted_ = shared;
}

// In the first one the data come back, and in later ones as long as the origin waits for pages. A
// long one may have been disturbed, or stood still for all: under a quota of CPU time one out of a
// few does. Where they never come back, as another region that is shared takes them away each time,
// it was not tried alone, and what is known of that can at most be too long.
void SharingModel::observe_trial(double time, double stall) {
  const bool is_last = runs_in_phase_ == kMostTrialRuns;
  const bool counts = runs_in_phase_ >= kTrialRuns && stall <= kComing * time;
  if (is_last && trial_runs_ == 0 && !counts && findings_.alone > 0) {
    time = std::min(time, findings_.alone);
  }
  if (counts || (is_last && trial_runs_ == 0)) {
    trial_time_ += time;
    longest_trial_ = std::max(longest_trial_, time);
    ++trial_runs_;
  }
  const bool is_first = counts && trial_runs_ == 1;
  const double most = kClearLoss * std::max(predicted_, alone_by_all_);
  const bool tells = is_first && spread_ < kAlike && time <= most;
  if (tells || is_last) decide_after_trial(trial_time_ / trial_runs_);
}

void SharingModel::decide_after_trial(double measured) {
  // Where executions are unlike only what holds for each of those that were tried is clear.
  const bool alike = spread_ < kAlike;
  const double took = alike ? measured : longest_trial_;
  if (predicted_ > 0 && (alike || took < findings_.alone)) {
    measured_by_predicted_ = took / predicted_;
    findings_.alone = took;
  }
  const bool is_first = !std::exchange(findings_.tried_alone, true);
  const double shared = doubted_ > 0 ? doubted_ : findings_.shared;
  const bool may_yet_pay = is_first && doubted_ <= 0 && falls_ &&
                           shared < kAboutAsLong * findings_.alone &&
                           without_stall_ < kPromising * findings_.alone;
  if (shared < findings_.alone || may_yet_pay) {
    const bool is_clear = shared < kClearGain * findings_.alone;
    if (doubted_ > 0) most_doubt_ *= is_clear ? kPatienceIfClear : kPatience;
    most_doubt_ = std::min(most_doubt_, kMostPatience);
    patience_ = 1;
    window_.settling = kTrialRuns;  // the data come back
    move_cost_.forget();
    return enter(Phase::kShared);
  }
  // By what it takes alone trying has cost more than was thought.
  const double tries = kRunsInDoubt * shared + tried_;
  cost_of_trying_ = std::max(cost_of_trying_, tries - (kRunsInDoubt + 2) * findings_.alone);
  if (!move_elsewhere()) go_alone();
}

}  // namespace amasia::loops
