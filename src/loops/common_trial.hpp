// SPDX-License-Identifier: Apache-2.0
// Whether all regions that are shared had better be the origin's, all together. Each for itself may
// gain by being shared while the others are: alone it would wait for the data that these have
// spread. So what one region takes alone says nothing; all of them are kept on the origin for some
// rounds of the program, and what they take then is held against what they took before (beyond
// libHetMP, ACM TOCS 2022, 3.4, question 3, which asks for each region apart). Pure.
//
//   apart     each is where it decided to be. Left once a shared region has run often, another one
//             is shared too, and much of the time is waiting for pages; of runs in which regions
//             find out what is best nothing counts
//   trial     all that ran apart are the origin's. Their first run there, to which the data come,
//             does not count; the verdict falls when each shared one has run three times more, or
//             it has lasted as long as they were apart
//   together  as trial, as long as trying again would cost more than it may
#pragma once

#include <cstdint>

#include "base/base.hpp"

namespace amasia::loops {

class CommonTrial {
 public:
  enum class State : std::uint8_t { kApart, kTrial, kTogether };

  // What is known of one region.
  struct Member {
    std::uint64_t epoch = 0;  // in which the following were counted
    std::uint32_t runs = 0;
    std::uint32_t shared_runs = 0;
    double mean = 0;          // what its runs took before the trial, without exceptions
    bool is_held = false;     // it ran apart, so it is to be tried
  };

  // For the region's next run.
  bool holds(const Member& member) const {
    // What ran in an earlier time apart only is as good as new.
    return state_ != State::kApart && member.is_held && member.epoch + 1 >= epoch_;
  }

  // After each run of a region whose times decide, ns. `shared`: it is, and has decided that for
  // good; `settled`: it is not finding out. `stall`: what was waited for pages, on the node that
  // waited longest.
  void note(Member& member, bool shared, bool settled, Nanos elapsed, Nanos stall);

  State state() const { return state_; }

 private:
  void begin(State state);
  void note_apart(Member& member, bool shared, bool settled, double time, double stall);
  void note_trial(Member& member, double time);
  void judge();

  State state_ = State::kApart;
  std::uint64_t epoch_ = 1;
  double total_ = 0, stall_ = 0;       // of this time apart
  std::uint32_t shared_members_ = 0;   // of this time apart
  std::uint32_t done_members_ = 0;     // of these, in the trial
  double spent_ = 0, worth_ = 0;       // in the trial, and what the same runs took before
  double lasts_ = 0;                   // the trial, so far
  double together_ = 0, most_together_ = 0;
  double patience_ = 1;                // doubled by each trial in vain, and by each return
};

const char* name_of(CommonTrial::State state);

}  // namespace amasia::loops
