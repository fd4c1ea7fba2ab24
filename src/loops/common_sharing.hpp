// SPDX-License-Identifier: Apache-2.0
// Whether all regions had better be shared, all together and by the same shares. Each for itself
// may lose by it: while others are the origin's, or have other shares, its data are elsewhere each
// time, so that it waits for pages whatever it does; with all of them shared alike the data would
// stay. No execution of one region can show that, so all are shared for some rounds of the program,
// and what they take then is held against what they took before (beyond libHetMP, ACM TOCS 2022,
// 3.4, question 3, which asks for each region apart; common_trial.hpp asks whether all had better
// be the origin's). Pure.
//
//   apart     each is where it decided to be. Left once one has run often, a fifth of the time
//             could be saved if none waited for pages, and two rounds that go wrong, as first tries
//             did, cost little of the time so far
//   trial     those that promise something are shared by common powers. Their first two runs, in
//             which data find their places, do not count; the verdict falls when most have run
//             three times more, it has lasted as long as they were apart, or it costs too much
//   together  as trial, as long as that does not lose as much
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/base.hpp"
#include "loops/sharing_model.hpp"

namespace amasia::loops {

class CommonSharing {
 public:
  enum class State : std::uint8_t { kApart, kTrial, kTogether };

  // What is known of one region.
  struct Member {
    std::uint64_t epoch = 0;  // in which the following were counted
    std::uint32_t runs = 0;
    double mean = 0;          // what its runs took before the trial, without exceptions
    double total = 0;         // the same, in all
    bool counts = false;      // it had settled then, so that its time says something
    bool is_held = false;     // it promised something, so it is to be shared
  };

  // For the region's next run.
  bool holds(const Member& member) const {
    // What ran in an earlier time apart only is as good as new.
    return state_ != State::kApart && member.is_held && member.epoch + 1 >= epoch_;
  }

  // What a region's model says after a run.
  struct Outlook {
    bool settled = false;  // it is on the origin or shared, and not finding out
    double promise = 0;    // what a run would take, shared, with all data in place, ns; 0: unknown
    double cost = 0;       // what finding out has lost, ns
  };
  // After each run of a region whose times decide. `allowance`: what tries may lose, ns.
  void note(Member& member, Nanos elapsed, const Outlook& outlook, double allowance);
  // Between regions the origin has waited so long for pages that they had spread.
  void charge(Nanos stall);

  // After an execution on several nodes, by node: what their cores compute.
  void note_speeds(std::span<const RegionPart> nodes, Nanos elapsed);
  // Which part of a work each node gets: by `powers`, as they were thought to be, unless they have
  // turned out to be clearly unlike that. In place; by node, 0: it takes no part.
  void correct_powers(std::span<double> powers) const;

  State state() const { return state_; }

 private:
  void begin(State state);
  void note_apart(Member& member, double time, const Outlook& outlook, double allowance);
  void note_trial(Member& member, double time);
  void note_together(const Member& member, double time);
  void judge();

  State state_ = State::kApart;
  std::uint64_t epoch_ = 1;
  double all_time_ = 0;                  // of all runs ever
  double total_ = 0, charged_ = 0;       // of this time apart
  double gain_ = 0, cost_ = 0;           // what could be saved in it; what a round may cost
  double done_ = 0;                      // in the trial: of total_, what has run often enough
  double spent_ = 0, worth_ = 0;         // in it, and what the same runs took before
  double lasts_ = 0;                     // the trial, so far
  double lost_ = 0, most_lost_ = 0;      // against the time apart, never below 0
  double patience_ = 1;                  // multiplied by each trial in vain
  std::array<double, base::kMaxNodes> speeds_{};  // sums over executions, weighted by their time
};

const char* name_of(CommonSharing::State state);

}  // namespace amasia::loops
