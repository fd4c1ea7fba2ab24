// SPDX-License-Identifier: Apache-2.0
// Whether the regions that are one node's had better be another's, all together (beyond libHetMP,
// ACM TOCS 2022, 3.4, question 3, which asks for each region apart). Regions that work on the same
// data draw it to and fro if one moves and the others stay: each loses by a move that all together
// gain by. Pure.
//
// Each region has told what it would take on every node, when it was shared to find out. So it is
// known what the regions, as often as they run, lose where they are against each other node. Once
// that is as much as trying has cost them, they are gathered there: what is lost by waiting and
// what may be lost by trying are alike, so that at most twice the lesser is (ski rental). On a node
// that is not known to be faster, only once trying costs little of the time that the program has
// taken.
//
//   apart      each region is where it decided to be; what they take is added up
//   trial      gathered; left when a stretch of the program was quicker than it would have been
//              before, or more was lost than had been by waiting
//   together   gathered; left when it becomes slower, or, now and then, to ask again
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "loops/sharing_model.hpp"

namespace amasia::loops {

class CommonNode {
 public:
  enum class State : std::uint8_t { kApart, kTrial, kTogether };

  explicit CommonNode(std::size_t node_count);

  // After model.observe_alone() or observe_shared(), with the same time. The model stays where it
  // is as long as this exists.
  void note(SharingModel& model, Nanos elapsed);
  // Stall outside of the regions, as of SharingModel::charge().
  void charge(Nanos stall);

  State state() const { return state_; }
  std::size_t node() const { return node_; }
  std::size_t members() const;

 private:
  struct Member {
    SharingModel* model;
    SharingModel::Phase phase = SharingModel::Phase::kCold;  // when it was noted last
    std::uint64_t epoch = 0;  // in which the following were counted
    double runs = 0;          // where it has chosen to be
    double mean = 0;          // what one of these takes
    double on_origin = 0;     // the same on the origin alone; 0: it was not there long enough
    bool weighed = false;     // it counts while others are gathered
    double gathered_runs = 0;  // in this stretch
  };
  struct Account {
    double spent = 0, worth = 0;  // what it took, and what it would have taken before
  };

  Member& member_of(SharingModel& model);
  void note_apart(Member& member, double time);
  void note_gathered(Member& member, double time);
  void measure_anew();
  double promised(const Member& member, std::size_t node) const;
  void log() const;
  void look();
  bool is_known_faster(std::size_t node) const;
  void gather(std::size_t node, double missed, double cost);
  void take_in(Member& member);
  void judge_stretch();
  void judge_trial(double ratio);
  std::size_t better_node();
  void scatter(bool in_vain);

  std::size_t node_count_;
  std::vector<Member> members_;
  std::unordered_map<const SharingModel*, std::size_t> index_;
  State state_ = State::kApart;
  std::size_t node_ = 0;
  std::array<double, base::kMaxNodes> patience_{};  // doubled by every trial in vain
  std::array<double, base::kMaxNodes> missed_{};    // while gathered, against these nodes
  double lifetime_ = 0;  // of all executions
  // Apart, since a region has last changed its mind: what all have taken, at how much of that the
  // next look is due, stall beside it.
  std::uint64_t epoch_ = 1;
  double total_ = 0, next_look_ = 0, charged_ = 0;
  // Gathered.
  Account stretch_, all_;
  double stretch_length_ = 0, longest_stretch_ = 0;  // of its worth
  double most_loss_ = 0, cost_ = 0, charged_part_ = 0;
  std::uint32_t stretches_ = 0, bad_stretches_ = 0;
};

const char* name_of(CommonNode::State state);

}  // namespace amasia::loops
