// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/turns.hpp"

#include <algorithm>

namespace amasia::dsm::protocol {
namespace {

// A turn is to be so many times as long as the collecting in it takes: the rest is for computing.
constexpr Nanos kTurnsOfCollecting = 4;
// What a thread waits beyond what its engine sees: until that learns of the fault, on a core that
// threads may compute on, and until the thread runs again.
constexpr Nanos kUnseen = 20 * base::kMicrosecond;
// Where nodes share cores that takes a multiple, which shows in how little the thread runs from one
// page to the next. Who did not run for longer may have slept for another reason.
constexpr Nanos kLongestIdle = base::kMillisecond;
// What a page takes that comes with others, on both nodes: so much of 750 000 that went to and fro.
constexpr Nanos kCollected = 8 * base::kMicrosecond;
// Until all nodes have heard of it, a stretch does not begin.
constexpr Nanos kNotice = 2 * base::kMillisecond;
// It lasts for so many rounds, in each of which a node may wish again; then it is renewed early.
constexpr Nanos kRounds = 2;

Nanos round_of(Nanos length, std::uint32_t node_count) { return length * node_count; }

bool is_about(Nanos length, Nanos other) {
  return 4 * length >= 3 * other && 4 * length <= 5 * other;
}

}  // namespace

Nanos usual_turn(std::uint32_t node_count) {
  if (node_count <= 2) return 5 * base::kMillisecond;
  return std::min(20 * base::kMillisecond, 80 * base::kMillisecond / node_count);
}

Nanos longest_turn(std::uint32_t node_count) {
  return std::max(usual_turn(node_count), 2 * base::kSecond / std::max(node_count, 2U));
}

bool is_valid(const Stretch& stretch, std::uint32_t node_count) {
  return stretch.length >= usual_turn(node_count) && stretch.length <= longest_turn(node_count) &&
         stretch.from >= 0 && stretch.until > stretch.from;
}

TurnSchedule::TurnSchedule(std::uint32_t node_count) : node_count_(node_count) {
  AMASIA_CHECK(node_count >= 1 && node_count <= base::kMaxNodes, "a job has 1 to 64 nodes");
}

void TurnSchedule::adopt(const Stretch& stretch) {
  if (stretch.from != next_.from) {
    current_ = next_;
    current_.until = std::min(current_.until, stretch.from);
  }
  next_ = stretch;
}

Turn TurnSchedule::at(Nanos now) const {
  AMASIA_CHECK(now >= 0, "the job's clock begins at 0");
  Stretch stretch{0, 0, usual_turn(node_count_)};
  for (const Stretch* known : {&current_, &next_}) {
    if (now >= known->from && now < known->until) stretch = *known;
  }
  const Nanos number = (now - stretch.from) / stretch.length;
  const Nanos begin = stretch.from + number * stretch.length;
  return {NodeId{static_cast<std::uint16_t>(number % node_count_)}, begin, begin + stretch.length,
          stretch.until != 0};
}

// What was measured of the turn before, if this is another one.
std::optional<Nanos> TurnMeter::enter(const Turn& turn) {
  if (turn.begin == begin_) return std::nullopt;
  std::optional<Nanos> wish;
  if (begin_ >= 0) {
    // Whoever waited for most of its turn has not come to the end of its collecting.
    const bool all_of_it = 2 * waited_ > length_;
    wish = kTurnsOfCollecting * (all_of_it ? length_ : waited_);
  }
  begin_ = counted_to_ = turn.begin;
  length_ = turn.length();
  waited_ = 0;
  return wish;
}

std::optional<Nanos> TurnMeter::on_wait(const Wait& wait, const Turn& turn) {
  if (wait.had_at >= turn.begin) return std::nullopt;
  const std::optional<Nanos> wish = enter(turn);
  const Nanos begin = wait.begin - std::min(wait.idle_before, kLongestIdle);
  const Nanos end = std::min(wait.end + kUnseen, turn.end);
  waited_ += std::max<Nanos>(0, end - std::max(begin, counted_to_));
  counted_to_ = std::max(counted_to_, end);
  return wish;
}

std::optional<Nanos> TurnMeter::on_collected(PageCount pages, const Turn& turn) {
  const std::optional<Nanos> wish = enter(turn);
  waited_ += static_cast<Nanos>(pages) * kCollected;
  return wish;
}

TurnArbiter::TurnArbiter(std::uint32_t node_count) : node_count_(node_count) {}

Nanos TurnArbiter::longest_wish(Nanos now) const {
  Nanos longest = 0;
  for (const Wish& wish : wishes_) {
    // Older ones were made of turns that nobody has seen again.
    const Nanos lasts = kRounds * round_of(std::max(stretch_.length, usual_turn(node_count_)),
                                           node_count_);
    if (now - wish.at <= lasts) longest = std::max(longest, wish.length);
  }
  return std::min(longest, longest_turn(node_count_));
}

std::optional<Stretch> TurnArbiter::on_wish(NodeId from, Nanos length, Nanos now) {
  wishes_[from.value] = {length, now};
  const Nanos longest = longest_wish(now);
  const bool is_on = now < stretch_.until;
  if (is_on && is_about(longest, stretch_.length)) {
    const Nanos round = round_of(stretch_.length, node_count_);
    if (2 * (stretch_.until - now) > 3 * round) return std::nullopt;
    stretch_.until = now + kRounds * round;
    return stretch_;
  }
  // Shorter than usual they never are; nor does it pay to stretch them by little.
  if (longest < 3 * usual_turn(node_count_) / 2) return std::nullopt;
  stretch_ = {now + kNotice, now + kNotice + kRounds * round_of(longest, node_count_), longest};
  return stretch_;
}

}  // namespace amasia::dsm::protocol
