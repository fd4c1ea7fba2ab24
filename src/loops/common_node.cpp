// SPDX-License-Identifier: Apache-2.0
#include "loops/common_node.hpp"

#include <algorithm>

namespace amasia::loops {
namespace {

// All together have to promise so much of what they take: serial code may want their data back.
constexpr double kWorthMoving = 0.9;
// A stretch that takes less of its worth shows that it was right; one that takes more, that it is
// not, or no longer.
constexpr double kClearGain = 0.97, kTolerance = 1.03, kClearLoss = 1.3;
// A stretch has every region so many times on average; stretches grow while it goes well.
constexpr double kRounds = 4, kMostRounds = 256;
constexpr std::uint32_t kMostStretches = 8, kBadStretches = 2;
// What is not known to be faster may cost this part of the time: halves of regions are unlike, and
// the node that had the lighter one promises too much.
constexpr double kUnknownBudget = 0.03;
// Asking again may cost this part of the time.
constexpr double kBudget = 0.01;
// Executions of a region that bring data, and those after which it is known what it takes.
constexpr double kSettling = 2, kEnough = 6;
// Of a node whose threads spin for it. What it takes here the trial will tell: when regions were
// shared to find out, the others' threads slept before.
constexpr double kLeastForkJoin = 2 * base::kMicrosecond;
constexpr double kFirstLook = base::kMillisecond;
constexpr double kMostPatience = 1e6;

}  // namespace

CommonNode::CommonNode(std::size_t node_count) : node_count_(node_count), next_look_(kFirstLook) {
  AMASIA_CHECK(node_count > 0 && node_count <= base::kMaxNodes, "a job has 1 to kMaxNodes nodes");
  patience_.fill(1);
}

CommonNode::Member& CommonNode::member_of(SharingModel& model) {
  const auto [found, is_new] = index_.try_emplace(&model, members_.size());
  if (is_new) members_.push_back({.model = &model});
  return members_[found->second];
}

std::size_t CommonNode::members() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      members_, [](const Member& member) { return member.model->is_gathered(); }));
}

void CommonNode::note(SharingModel& model, Nanos elapsed) {
  Member& member = member_of(model);
  const auto time = static_cast<double>(elapsed);
  lifetime_ += time;
  if (state_ == State::kApart) {
    // What a region takes that moves, and what others take then, is not what they will take.
    if (member.phase != model.phase()) measure_anew();
    member.phase = model.phase();
  }
  if (model.is_unsettled()) return;
  if (state_ != State::kApart && member.weighed) return note_gathered(member, time);
  note_apart(member, time);
}

void CommonNode::charge(Nanos stall) {
  const auto time = static_cast<double>(stall);
  if (state_ == State::kApart) {
    charged_ += time;
    return;
  }
  stretch_.spent += time;
  all_.spent += time;
}

void CommonNode::measure_anew() {
  ++epoch_;
  total_ = charged_ = 0;
  next_look_ = kFirstLook;
}

void CommonNode::note_apart(Member& member, double time) {
  if (member.epoch != epoch_) {
    member.epoch = epoch_;
    member.runs = 0;
  }
  // No time is too long to count: under a quota of CPU time, a few executions stand still for all.
  member.runs += 1;
  if (member.runs <= kSettling) return;
  const double counted = member.runs - kSettling;
  if (counted == 1) member.mean = 0;
  member.mean += (time - member.mean) / counted;
  const bool enough = member.runs >= kEnough;
  const bool on_origin = member.model->phase() == SharingModel::Phase::kAlone;
  if (enough && on_origin) member.on_origin = member.mean;
  if (state_ != State::kApart) return take_in(member);
  total_ += time;
  if (total_ >= next_look_) look();
}

// What an execution takes on `node` at best; of a region that stays, what it takes.
double CommonNode::promised(const Member& member, std::size_t node) const {
  const bool moves = member.model->may_gather() || member.model->is_gathered();
  const double time = moves ? member.model->promise(node, member.on_origin) : 0;
  if (time <= 0) return member.mean;
  return node == 0 ? time : time + kLeastForkJoin;
}

// Whether the regions, as often as they have run, would have taken less on another node.
void CommonNode::look() {
  double here = 0, cost = 0;
  std::array<double, base::kMaxNodes> there{};
  for (const Member& member : members_) {
    if (member.epoch != epoch_ || member.runs < kEnough) continue;
    here += member.runs * member.mean;
    if (member.model->may_gather()) cost += member.model->cost_of_trying();
    for (std::size_t i = 1; i < node_count_; ++i) {
      there[i] += member.runs * promised(member, i);
    }
  }
  // As long as nothing promises anything it is looked for at times that double.
  next_look_ = 2 * total_;
  std::size_t best = 0;
  for (std::size_t i = 1; i < node_count_; ++i) {
    if (there[i] >= kWorthMoving * here || (best != 0 && there[i] >= there[best])) continue;
    const double missed = here - there[i], least = cost * patience_[i];
    const bool affordable = is_known_faster(i) || least <= kUnknownBudget * lifetime_;
    if (missed >= least && affordable) {
      best = i;
    } else {
      next_look_ = std::min(next_look_, 1.1 * total_);
    }
  }
  if (best != 0) gather(best, here - there[best], cost);
}

bool CommonNode::is_known_faster(std::size_t node) const {
  return !members_.empty() && members_.front().model->is_known_faster(node);
}

void CommonNode::gather(std::size_t node, double missed, double cost) {
  node_ = node;
  double round = 0;
  for (Member& member : members_) {
    member.weighed = member.epoch == epoch_ && member.runs >= kEnough;
    member.gathered_runs = 0;
    if (!member.weighed) continue;
    if (member.model->may_gather()) member.model->gather_to(node_);
    round += member.mean;
  }
  state_ = State::kTrial;
  stretch_ = all_ = {};
  stretch_length_ = kRounds * round;
  longest_stretch_ = kMostRounds * round;
  stretches_ = bad_stretches_ = 0;
  most_loss_ = std::max(missed, stretch_length_);
  cost_ = cost;
  charged_part_ = charged_ / std::max(1.0, total_);
  missed_.fill(0);
  log();
}

// One that came later, or again: its data may be with the others'.
void CommonNode::take_in(Member& member) {
  if (member.runs < kEnough) return;
  member.weighed = true;
  if (!member.model->may_gather()) return;
  if (promised(member, node_) < member.mean) member.model->gather_to(node_);
}

void CommonNode::note_gathered(Member& member, double time) {
  const double worth = member.mean * (1 + charged_part_);
  stretch_.spent += time;
  stretch_.worth += worth;
  all_.spent += time;
  all_.worth += worth;
  member.gathered_runs += 1;
  if (state_ == State::kTrial && all_.spent - all_.worth > most_loss_) return scatter(true);
  if (stretch_.worth >= stretch_length_) judge_stretch();
}

void CommonNode::judge_stretch() {
  const double ratio = stretch_.spent / stretch_.worth;
  ++stretches_;
  if (state_ == State::kTrial) {
    judge_trial(ratio);
  } else {
    bad_stretches_ = ratio > kTolerance ? bad_stretches_ + 1 : 0;
    if (bad_stretches_ >= kBadStretches) return scatter(true);
    if (bad_stretches_ == 0 && stretch_length_ < longest_stretch_) stretch_length_ *= 2;
  }
  if (state_ == State::kTogether) {
    // What the regions took before is long ago, or something else has become better.
    const bool ask_again = all_.spent * kBudget >= 2 * cost_ + stretch_length_;
    if (ask_again || better_node() != node_) return scatter(!ask_again);
  }
  stretch_ = {};
  for (Member& member : members_) member.gathered_runs = 0;
}

void CommonNode::judge_trial(double ratio) {
  if (ratio < kClearGain) {
    cost_ += std::max(0.0, all_.spent - all_.worth);
    state_ = State::kTogether;
    log();
  } else if ((stretches_ > 1 && ratio > kClearLoss) || stretches_ >= kMostStretches) {
    scatter(true);  // data have had the time to come
  }
}

// By what this stretch took: where the regions had better be by now.
std::size_t CommonNode::better_node() {
  std::array<double, base::kMaxNodes> there{};
  for (const Member& member : members_) {
    if (!member.model->is_gathered()) continue;
    for (std::size_t i = 0; i < node_count_; ++i) {
      there[i] += member.gathered_runs * promised(member, i);
    }
  }
  double here = stretch_.spent;
  for (const Member& member : members_) {
    if (!member.model->is_gathered()) here -= member.gathered_runs * member.mean;
  }
  std::size_t best = node_;
  for (std::size_t i = 0; i < node_count_; ++i) {
    if (i == node_) continue;
    missed_[i] = std::max(0.0, missed_[i] + kWorthMoving * here - there[i]);
    if (missed_[i] > cost_ * patience_[node_] && (best == node_ || there[i] < there[best])) {
      best = i;
    }
  }
  return best;
}

// Each is the origin's again, and may decide otherwise.
void CommonNode::scatter(bool in_vain) {
  for (Member& member : members_) {
    if (member.model->is_gathered()) member.model->scatter();
    member.weighed = false;
    member.phase = member.model->phase();
  }
  log();
  double& patience = patience_[node_];
  patience = in_vain ? std::min(2 * patience, kMostPatience) : 1;
  state_ = State::kApart;
  node_ = 0;
  measure_anew();
}

void CommonNode::log() const {
  using base::LogLevel;
  if (!base::log_enabled(LogLevel::kDebug)) return;
  base::log_line(LogLevel::kDebug, "{} regions {} on node {}: {:.0f} us for what took {:.0f} us",
                 members(), name_of(state_), node_, all_.spent / 1e3, all_.worth / 1e3);
}

const char* name_of(CommonNode::State state) {
  constexpr std::array<const char*, 3> kNames = {"apart", "trial", "together"};
  const auto index = static_cast<std::size_t>(state);
  AMASIA_CHECK(index < kNames.size(), "every state has a name");
  return kNames[index];
}

}  // namespace amasia::loops
