// SPDX-License-Identifier: Apache-2.0
#include "loops/common_trial.hpp"

#include <algorithm>

namespace amasia::loops {
namespace {

// A shared region has run so often before all are tried on the origin.
constexpr double kRunsBefore = 12;
// Not where waiting for pages is a smaller part of the time: then sharing pays.
constexpr double kMuchStall = 0.15;
constexpr std::uint32_t kTrialRuns = 4;  // the first of which brings the data
// Shorter by this at least, or the regions stay apart.
constexpr double kClearGain = 0.93;
// Trying again may cost this part of the time that all take together.
constexpr double kBudget = 0.01;
constexpr double kNewWeight = 0.25, kMostAtOnce = 2;
constexpr double kMostPatience = 1e6;

}  // namespace

void CommonTrial::begin(State state) {
  state_ = state;
  ++epoch_;
  if (state == State::kApart) {
    total_ = stall_ = 0;
    shared_members_ = 0;
  } else {
    spent_ = worth_ = together_ = lasts_ = 0;
    done_members_ = 0;
  }
}

void CommonTrial::note(Member& member, bool shared, bool settled, Nanos elapsed, Nanos stall) {
  const auto time = static_cast<double>(elapsed);
  if (state_ != State::kApart && !holds(member)) return;  // it is new, and decides for itself
  if (member.epoch != epoch_ && state_ != State::kTogether) {
    member.epoch = epoch_;
    member.runs = 0;
    if (state_ == State::kApart) {
      member.shared_runs = 0;
      member.is_held = false;
    }
  }
  switch (state_) {
    case State::kApart:
      return note_apart(member, shared, settled, time, static_cast<double>(stall));
    case State::kTrial:
      return note_trial(member, time);
    case State::kTogether:
      together_ += time;
      if (together_ > most_together_) begin(State::kApart);
  }
}

void CommonTrial::note_apart(Member& member, bool shared, bool settled, double time,
                             double stall) {
  if (!settled) return;  // what is still finding out takes longer than it will
  ++member.runs;
  const double counted = std::min(time, kMostAtOnce * member.mean);
  member.mean = member.runs == 1 ? time : member.mean + kNewWeight * (counted - member.mean);
  member.is_held = true;
  total_ += time;
  stall_ += stall;
  if (!shared) return;
  if (member.shared_runs++ == 0) ++shared_members_;
  const bool often = member.shared_runs >= kRunsBefore * patience_;
  if (often && shared_members_ > 1 && stall_ > kMuchStall * total_) begin(State::kTrial);
}

void CommonTrial::note_trial(Member& member, double time) {
  lasts_ += time;
  if (++member.runs > 1) {
    spent_ += time;
    worth_ += member.mean;
  }
  if (member.shared_runs > 0 && member.runs == kTrialRuns) ++done_members_;
  // The program may have gone on to other regions.
  if (done_members_ == shared_members_ || lasts_ > total_) judge();
}

void CommonTrial::judge() {
  if (spent_ >= kClearGain * worth_) {  // also where nothing has run twice
    patience_ = std::min(2 * patience_, kMostPatience);
    return begin(State::kApart);
  }
  // Sharing again, until it is tried again, loses that for each of the rounds.
  const double cost = kRunsBefore / (kTrialRuns - 1) * (worth_ - spent_);
  most_together_ = cost * patience_ / kBudget;
  patience_ = std::min(2 * patience_, kMostPatience);
  state_ = State::kTogether;
}

const char* name_of(CommonTrial::State state) {
  switch (state) {
    case CommonTrial::State::kApart: return "apart";
    case CommonTrial::State::kTrial: return "on trial";
    case CommonTrial::State::kTogether: return "together";
  }
  return "";
}

}  // namespace amasia::loops
