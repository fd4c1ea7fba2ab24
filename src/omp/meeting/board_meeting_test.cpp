// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/board_meeting.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace amasia::omp {
namespace {

// Participants meet `meetings` times. Every access to the shared memory is a step of its own, by
// whichever participant; plain stores go through a store buffer first, as on x86, and leave it at
// any time, in their order. Explored depth first, every state once.

enum class Bug {
  kNone,
  kArrivesBeforeGiving,    // A1
  kOneSlot,                // A2
  kPlainArrival,           // A3: the arrival may still be in the store buffer
  kLooksForSleepersFirst,  // A3
  kSleepsWithoutLooking,   // A3
  kReadsBellAfterLooking,  // A3
  kMarksPlainly,           // A3
  kForgetsTheBell,         // A3
  kWantsEqualNumbers,      // a participant that is ahead is waited for
  kForgetsAParticipant,
};

constexpr std::uint32_t kMost = 3;

// One participant's part of the memory.
struct Slot {
  std::uint8_t arrival = 0;
  std::uint8_t sleepers = 0;
  std::uint8_t bell = 0;
  std::array<std::uint8_t, 2> word_number{};
  std::array<std::uint8_t, 2> word{};
};

struct Store {
  std::uint8_t offset;  // in the participant's slot
  std::uint8_t value;
};

struct Participant {
  std::uint8_t number = 1;  // of the meeting under way; beyond the last: has left
  BoardMeeting meeting{0, 1, {}};
  std::optional<BellWait> wait;
  std::uint8_t bell_read = 0;
  bool asleep = false;
  std::deque<Store> buffer;
  // For kLooksForSleepersFirst: what was seen before the arrival.
  std::array<bool, kMost> sleeper_seen{};
};

class Model {
 public:
  Model(std::uint32_t size, std::uint32_t meetings, Bug bug)
      : size_(size), meetings_(meetings), bug_(bug), slots_(size), all_(size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) enter(rank);
  }

  const std::string& fault() const { return fault_; }
  bool has_left(std::uint32_t rank) const { return all_[rank].number > meetings_; }
  bool can_act(std::uint32_t rank) const { return !has_left(rank) && !all_[rank].asleep; }
  bool can_drain(std::uint32_t rank) const { return !all_[rank].buffer.empty(); }

  void drain(std::uint32_t rank) {
    const Store store = all_[rank].buffer.front();
    all_[rank].buffer.pop_front();
    reinterpret_cast<std::uint8_t*>(&slots_[rank])[store.offset] = store.value;
  }

  // `patient`: only of consequence where patience() says so.
  void act(std::uint32_t rank, bool patient) {
    Participant& self = all_[rank];
    if (self.wait.has_value()) return wait(rank, patient);
    using Action = BoardMeeting::Action;
    BoardMeeting& meeting = self.meeting;
    const std::uint32_t other = meeting.other();
    switch (meeting.action()) {
      case Action::kGive:
        if (bug_ == Bug::kArrivesBeforeGiving) write(rank, &slots_[rank].arrival, self.number);
        write(rank, &slots_[rank].word[slot_of(self.number)], meeting.word().value);
        write(rank, &slots_[rank].word_number[slot_of(self.number)], self.number);
        return meeting.done();
      case Action::kArrive:
        return arrive(rank);
      case Action::kLookForSleeper:
        return meeting.done(bug_ == Bug::kLooksForSleepersFirst ? self.sleeper_seen[other]
                                                                : slots_[other].sleepers != 0);
      case Action::kRing:
        if (bug_ != Bug::kForgetsTheBell) ring(rank, other);
        return meeting.done();
      case Action::kAwait:
        if (bug_ == Bug::kForgetsAParticipant && other + 1 == size_) return meeting.done();
        self.wait.emplace();
        return wait(rank, patient);
      case Action::kTake: {
        const Slot& from = slots_[other];
        const std::size_t slot = slot_of(self.number);
        return meeting.take({from.word_number[slot] == self.number, from.word[slot]});
      }
      case Action::kLeave:
        return leave(rank);
    }
  }
  // Whether act() asks for patience: both answers are explored.
  bool patience(std::uint32_t rank) const {
    const Participant& self = all_[rank];
    if (self.wait.has_value()) {
      return self.wait->action() == BellWait::Action::kLook && !self.wait->marked();
    }
    return self.meeting.action() == BoardMeeting::Action::kAwait;
  }

  std::string name() const {
    std::string name;
    const auto add = [&name](auto value) { name.push_back(static_cast<char>(value)); };
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      const Participant& self = all_[rank];
      const Slot& slot = slots_[rank];
      for (const std::uint8_t value : {slot.arrival, slot.sleepers, slot.word_number[0],
                                       slot.word_number[1], slot.word[0], slot.word[1]}) {
        add(value);
      }
      // How often the bell was rung does not matter, only whether it was since it was read.
      add(self.wait.has_value() && self.wait->action() != BellWait::Action::kReadBell &&
          slot.bell != self.bell_read);
      add(self.number);
      add(self.meeting.action());
      add(self.meeting.other());
      add(self.meeting.word().present ? self.meeting.word().value : 0);
      add(self.wait.has_value() ? 1 + static_cast<int>(self.wait->action()) : 0);
      add(self.wait.has_value() && self.wait->marked());
      add(self.asleep);
      for (const bool seen : self.sleeper_seen) add(seen);
      for (const Store& store : self.buffer) {
        add(store.offset);
        add(store.value);
      }
      add(255);
    }
    return name;
  }

 private:
  std::size_t slot_of(std::uint8_t number) const { return bug_ == Bug::kOneSlot ? 0 : number % 2; }
  // One participant gives in two meetings in a row, then the next one.
  std::uint32_t giver_of(std::uint8_t number) const { return number / 2 % size_; }
  // What a participant brings to a meeting; in the last one nobody gives.
  Word word_of(std::uint32_t rank, std::uint8_t number) const {
    if (number == meetings_ && meetings_ > 2) return {};
    return giver_of(number) == rank ? Word{true, 100u + number} : Word{};
  }

  void write(std::uint32_t rank, const std::uint8_t* place, std::uint64_t value) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(&slots_[rank]);
    all_[rank].buffer.push_back(
        {static_cast<std::uint8_t>(place - begin), static_cast<std::uint8_t>(value)});
  }
  void drain_all(std::uint32_t rank) {
    while (can_drain(rank)) drain(rank);
  }

  void enter(std::uint32_t rank) {
    Participant& self = all_[rank];
    self.meeting = BoardMeeting(rank, size_, word_of(rank, self.number));
    for (std::uint32_t other = 0; other < size_; ++other) {
      self.sleeper_seen[other] = bug_ == Bug::kLooksForSleepersFirst && slots_[other].sleepers != 0;
    }
  }

  void arrive(std::uint32_t rank) {
    Participant& self = all_[rank];
    write(rank, &slots_[rank].arrival, self.number);
    if (bug_ != Bug::kPlainArrival) drain_all(rank);
    self.meeting.done();
  }

  void leave(std::uint32_t rank) {
    Participant& self = all_[rank];
    for (const Participant& other : all_) {
      const bool before_arrival = other.meeting.action() == BoardMeeting::Action::kGive ||
                                  other.meeting.action() == BoardMeeting::Action::kArrive;
      if (other.number < self.number || (other.number == self.number && before_arrival)) {
        fault_ = "left before all had arrived";
      }
    }
    if (self.meeting.word() != word_of(giver_of(self.number), self.number)) {
      fault_ = "the value did not reach all";
    }
    ++self.number;
    if (!has_left(rank)) enter(rank);
  }

  void ring(std::uint32_t rank, std::uint32_t other) {
    drain_all(rank);
    ++slots_[other].bell;
    all_[other].asleep = false;
  }

  bool has_arrived(std::uint32_t other, std::uint8_t number) const {
    if (bug_ == Bug::kWantsEqualNumbers) return slots_[other].arrival == number;
    return BoardMeeting::has_arrived(slots_[other].arrival, number);
  }

  void wait(std::uint32_t rank, bool patient) {
    using Action = BellWait::Action;
    Participant& self = all_[rank];
    switch (self.wait->action()) {
      case Action::kLook: {
        bool posted = has_arrived(self.meeting.other(), self.number);
        if (bug_ == Bug::kSleepsWithoutLooking && self.wait->marked()) posted = false;
        if (bug_ == Bug::kReadsBellAfterLooking) self.bell_read = slots_[rank].bell;
        return self.wait->looked(posted, patient);
      }
      case Action::kReadBell:
        self.bell_read = slots_[rank].bell;
        break;
      case Action::kMark:
        if (bug_ == Bug::kMarksPlainly) {
          write(rank, &slots_[rank].sleepers, 1);
        } else {
          drain_all(rank);
          slots_[rank].sleepers = 1;
        }
        break;
      case Action::kSleep:
        if (bug_ == Bug::kReadsBellAfterLooking) self.bell_read = slots_[rank].bell;
        self.asleep = slots_[rank].bell == self.bell_read;
        break;
      case Action::kUnmark:
        drain_all(rank);
        slots_[rank].sleepers = 0;
        break;
      case Action::kGo:
        self.wait.reset();
        return self.meeting.done();
    }
    self.wait->done();
  }

  std::uint32_t size_;
  std::uint32_t meetings_;
  Bug bug_;
  std::vector<Slot> slots_;
  std::vector<Participant> all_;
  std::string fault_;
};

struct Outcome {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::string fault;
};

Outcome explore(std::uint32_t size, std::uint32_t meetings, Bug bug) {
  Outcome outcome;
  std::unordered_set<std::string> seen;
  std::vector<Model> open{Model(size, meetings, bug)};
  const auto reach = [&](Model model) {
    if (!model.fault().empty()) outcome.fault = model.fault();
    if (seen.insert(model.name()).second) open.push_back(std::move(model));
  };
  while (!open.empty() && outcome.fault.empty()) {
    const Model model = std::move(open.back());
    open.pop_back();
    ++outcome.states;
    bool stuck = true, all_left = true;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      all_left = all_left && model.has_left(rank);
      if (model.can_drain(rank)) {
        stuck = false;
        Model next = model;
        next.drain(rank);
        reach(std::move(next));
      }
      if (!model.can_act(rank)) continue;
      stuck = false;
      for (int patient = 0; patient < (model.patience(rank) ? 2 : 1); ++patient) {
        Model next = model;
        next.act(rank, patient != 0);
        reach(std::move(next));
      }
    }
    if (stuck && all_left) ++outcome.ends;
    if (stuck && !all_left) outcome.fault = "stuck";
  }
  return outcome;
}

struct Size {
  std::uint32_t participants, meetings;
  std::size_t states;  // pinned: another number says that the explored behaviour has changed
};

TEST(BoardMeeting, EveryOrderOfAccessesLetsAllThroughTogether) {
  for (const Size& size : {Size{1, 3, 13}, Size{2, 4, 2053}, Size{3, 3, 213846}}) {
    const Outcome outcome = explore(size.participants, size.meetings, Bug::kNone);
    EXPECT_EQ(outcome.fault, "") << size.participants << " participants";
    EXPECT_GE(outcome.ends, 1u);
    EXPECT_EQ(outcome.states, size.states) << size.participants << " participants";
  }
}

TEST(BoardMeeting, TheExplorerFindsPlantedBugs) {
  for (const Bug bug :
       {Bug::kArrivesBeforeGiving, Bug::kOneSlot, Bug::kPlainArrival, Bug::kLooksForSleepersFirst,
        Bug::kSleepsWithoutLooking, Bug::kReadsBellAfterLooking, Bug::kMarksPlainly,
        Bug::kForgetsTheBell, Bug::kWantsEqualNumbers, Bug::kForgetsAParticipant}) {
    EXPECT_NE(explore(2, 4, bug).fault, "") << static_cast<int>(bug);
  }
}

TEST(BoardMeeting, FlagsAreJoined) {
  constexpr std::uint64_t kMine = std::uint64_t{1} << 56, kTheirs = std::uint64_t{2} << 56;
  BoardMeeting meeting(0, 3, {true, kMine});
  while (meeting.action() != BoardMeeting::Action::kTake) meeting.done();
  meeting.take({true, kTheirs | 5});
  meeting.take({});
  EXPECT_EQ(meeting.action(), BoardMeeting::Action::kLeave);
  EXPECT_EQ(meeting.word(), (Word{true, kMine | kTheirs | 5}));
}

TEST(BoardMeetingDeath, TwoValuesAreABug) {
  BoardMeeting meeting(0, 2, {true, 1});
  while (meeting.action() != BoardMeeting::Action::kTake) meeting.done();
  EXPECT_DEATH(meeting.take({true, 2}), "at most one participant");
}

}  // namespace
}  // namespace amasia::omp
