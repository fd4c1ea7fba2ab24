// SPDX-License-Identifier: Apache-2.0
#include "loops/common_sharing.hpp"

#include <algorithm>

namespace amasia::loops {
namespace {

// A region has run so often before all are tried together. If they are not, what is counted begins
// anew after so many runs, which took that part of the time so far.
constexpr std::uint32_t kRunsBefore = 8, kMostRunsBefore = 64;
constexpr double kMostOfTime = 0.25;
// Not where less of the time could be saved.
constexpr double kWorthTrying = 0.2;
// A region that promises no more than this of its time is left where it is.
constexpr double kPromising = 0.9;
// Two rounds go wrong before it is seen that they do; that may cost this part of the time so far.
constexpr double kRounds = 2, kBudget = 0.02;
constexpr std::uint32_t kSettlingRuns = 2, kCountedRuns = 3;
// The regions that have run enough for a verdict took this part of the time.
constexpr double kMost = 0.9;
// Shorter by this at least, or the regions stay apart.
constexpr double kClearGain = 0.95;
constexpr double kImpatience = 4, kMostPatience = 1e6;
constexpr double kNewWeight = 0.25, kMostAtOnce = 2;
// Nodes are as fast as they were thought to be unless they differ by more: first executions are
// no good measure.
constexpr double kAlike = 1.5;

}  // namespace

void CommonSharing::begin(State state) {
  state_ = state;
  ++epoch_;
  if (state == State::kApart) {
    total_ = charged_ = gain_ = cost_ = 0;
  } else {
    spent_ = worth_ = lasts_ = done_ = lost_ = 0;
    most_lost_ = kRounds * cost_ + kBudget * all_time_ / patience_;
  }
}

void CommonSharing::note(Member& member, Nanos elapsed, const Outlook& outlook,
                         double allowance) {
  const auto time = static_cast<double>(elapsed);
  all_time_ += time;
  // What is new since the trial began decides for itself.
  if (state_ != State::kApart && (!member.counts || member.epoch + 1 < epoch_)) return;
  if (member.epoch != epoch_ && state_ != State::kTogether) {
    member.epoch = epoch_;
    member.runs = 0;
    if (state_ == State::kApart) {
      member.total = 0;
      member.counts = member.is_held = false;
    }
  }
  switch (state_) {
    case State::kApart:
      return note_apart(member, time, outlook, allowance);
    case State::kTrial:
      return note_trial(member, time);
    case State::kTogether:
      return note_together(member, time);
  }
}

void CommonSharing::note_apart(Member& member, double time, const Outlook& outlook,
                               double allowance) {
  if (!outlook.settled) return;  // what is still finding out takes longer than it will
  ++member.runs;
  const double counted = std::min(time, kMostAtOnce * member.mean);
  member.mean = member.runs == 1 ? time : member.mean + kNewWeight * (counted - member.mean);
  member.total += time;
  member.counts = true;
  member.is_held = outlook.promise > 0 && outlook.promise < kPromising * member.mean;
  total_ += time;
  if (member.is_held) gain_ += std::max(0.0, time - outlook.promise);
  if (member.runs == 1) cost_ += outlook.cost;
  if (member.runs < kRunsBefore) return;
  const double risk = kRounds * cost_;
  const bool worth_it = gain_ > kWorthTrying * total_;
  if (worth_it && risk * patience_ < kBudget * all_time_ && risk < allowance) {
    return begin(State::kTrial);
  }
  if (member.runs >= kMostRunsBefore && total_ > kMostOfTime * all_time_) begin(State::kApart);
}

void CommonSharing::note_trial(Member& member, double time) {
  lasts_ += time;
  lost_ = std::max(0.0, lost_ + time - member.mean);
  if (++member.runs > kSettlingRuns) {
    spent_ += time;
    worth_ += member.mean * (1 + charged_ / total_);
  }
  if (member.runs == kSettlingRuns + kCountedRuns) done_ += member.total;
  // The program may have gone on to other regions.
  if (done_ >= kMost * total_ || lasts_ > total_ || lost_ > most_lost_) judge();
}

void CommonSharing::judge() {
  // Also where nothing has run often enough.
  if (lost_ > most_lost_ || spent_ >= kClearGain * worth_) {
    patience_ = std::min(kImpatience * patience_, kMostPatience);
    return begin(State::kApart);
  }
  state_ = State::kTogether;
  lost_ = 0;
}

// Where the program has changed it is found out anew.
void CommonSharing::note_together(const Member& member, double time) {
  lost_ = std::max(0.0, lost_ + time - member.mean);
  if (lost_ > most_lost_) begin(State::kApart);
}

void CommonSharing::charge(Nanos stall) {
  const auto time = static_cast<double>(stall);
  if (state_ == State::kApart) {
    charged_ += time;
  } else {
    lost_ += time;
    if (worth_ > 0) spent_ += time;
  }
}

void CommonSharing::note_speeds(std::span<const RegionPart> nodes, Nanos elapsed) {
  std::array<double, base::kMaxNodes> rates{};
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].work <= 0 || nodes[i].busy <= 0) return;  // without one nothing can be compared
    rates[i] = nodes[i].work / static_cast<double>(nodes[i].busy);
    sum += rates[i];
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    speeds_[i] += static_cast<double>(elapsed) * rates[i] / sum;
  }
}

void CommonSharing::correct_powers(std::span<double> powers) const {
  if (speeds_[0] <= 0) return;
  bool alike = true;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    if (powers[i] <= 0) continue;
    const double ratio = speeds_[i] / speeds_[0] * powers[0] / powers[i];
    alike = alike && ratio < kAlike && ratio > 1 / kAlike;
  }
  for (std::size_t i = 0; i < powers.size() && !alike; ++i) {
    if (powers[i] > 0) powers[i] = speeds_[i];
  }
}

const char* name_of(CommonSharing::State state) {
  switch (state) {
    case CommonSharing::State::kApart: return "apart";
    case CommonSharing::State::kTrial: return "on trial";
    case CommonSharing::State::kTogether: return "together";
  }
  return "";
}

}  // namespace amasia::loops
