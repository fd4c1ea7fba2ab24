// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/meeting.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace amasia::omp {
namespace {

// A whole team meeting `kGenerations` times, for exhaustive exploration: each participant arriving
// and each signal being received is a step of its own. Signals between two participants keep their
// order, others overtake each other freely.
struct Signal {
  std::uint32_t generation, round;
  Word word;
};

// What is planted to see that the explorer finds it.
enum class Bug { kNone, kSkipsLastRound, kForgetsEarly, kOwnWordOnly, kArrivesTwice };

struct World {
  struct Participant {
    Meeting meeting;
    std::uint32_t generation = 0;
    bool waiting = false;
    // What came for the next generation, as the mailbox keeps it.
    std::vector<Signal> early;
    std::string history;  // for the state's name
  };
  std::uint32_t size;
  std::vector<Participant> participants;
  std::vector<std::deque<Signal>> channels;  // from * size + to
  std::vector<std::uint32_t> arrived;        // per generation
  Bug bug;
  std::string fault;  // what went wrong, if something did

  World(std::uint32_t count, std::uint32_t generations, Bug planted)
      : size(count),
        participants(count),
        channels(count * count),
        arrived(generations),
        bug(planted) {
    for (std::uint32_t i = 0; i < count; ++i) participants[i].meeting = Meeting(i, count);
  }
};

// Everyone brings a flag of its own.
Word with_flag(Word word, std::uint32_t rank) {
  return {true, word.value | std::uint64_t{1} << (56 + rank)};
}

Word with_all_flags(Word word, std::uint32_t size) {
  for (std::uint32_t rank = 0; rank < size; ++rank) word = with_flag(word, rank);
  return word;
}

// In each generation another participant brings a value.
Word word_of(std::uint32_t rank, std::uint32_t generation, std::uint32_t size) {
  return generation % size == rank ? Word{true, 100 + generation} : Word{};
}

void carry_out(World& world, std::uint32_t rank, const Meeting::Step& step);

void hear(World& world, std::uint32_t rank, const Signal& signal) {
  auto& self = world.participants[rank];
  self.history += "h" + std::to_string(signal.round);
  self.meeting.hear(signal.round, signal.word);
  if (self.waiting) carry_out(world, rank, self.meeting.advance());
}

void send(World& world, std::uint32_t rank, const Meeting::Step& step) {
  const std::uint32_t generation = world.participants[rank].generation;
  Word word = step.word;
  if (world.bug == Bug::kOwnWordOnly) word = with_flag(word_of(rank, generation, world.size), rank);
  world.channels[rank * world.size + step.to].push_back({generation, step.round, word});
}

void complete(World& world, std::uint32_t rank, Word word) {
  auto& self = world.participants[rank];
  if (world.arrived[self.generation] != world.size) world.fault = "left before all had arrived";
  const Word value = word_of(self.generation % world.size, self.generation, world.size);
  if (word != with_all_flags(value, world.size)) {
    world.fault = "the value did not reach all";
  }
  self.waiting = false;
  ++self.generation;
  self.meeting = Meeting(rank, world.size);
  self.history.clear();
  const std::vector<Signal> early = std::exchange(self.early, {});
  if (world.bug == Bug::kForgetsEarly) return;
  for (const Signal& signal : early) hear(world, rank, signal);
}

void carry_out(World& world, std::uint32_t rank, const Meeting::Step& first) {
  auto& self = world.participants[rank];
  for (Meeting::Step step = first;; step = self.meeting.advance()) {
    if (step.complete) return complete(world, rank, step.word);
    if (!step.send) return;
    const bool last = step.round + 1 == Meeting::rounds_of(world.size);
    if (world.bug == Bug::kSkipsLastRound && last) return complete(world, rank, step.word);
    send(world, rank, step);  // and on: the signal that is awaited may have come early
  }
}

std::string name_of(const World& world) {
  std::string name;
  for (const auto& participant : world.participants) {
    name += std::to_string(participant.generation) + (participant.waiting ? "w" : "i") +
            participant.history;
    for (const Signal& signal : participant.early) name += "e" + std::to_string(signal.round);
    name += " ";
  }
  for (const auto& channel : world.channels) {
    for (const Signal& signal : channel) {
      name += std::to_string(signal.generation) + "." + std::to_string(signal.round) + ",";
    }
    name += "|";
  }
  return name;
}

struct Explorer {
  std::uint32_t generations;
  std::set<std::string> seen{};
  std::size_t ends = 0;
  std::string fault{};

  void explore(const World& world) {
    if (!world.fault.empty()) fault = world.fault;
    if (!fault.empty() || !seen.insert(name_of(world)).second) return;
    bool stuck = true;
    for (std::uint32_t rank = 0; rank < world.size; ++rank) {
      const auto& self = world.participants[rank];
      if (self.waiting || self.generation == generations) continue;
      stuck = false;
      explore(after_arrival(world, rank));
    }
    for (std::size_t channel = 0; channel < world.channels.size(); ++channel) {
      if (world.channels[channel].empty()) continue;
      stuck = false;
      explore(after_delivery(world, channel));
    }
    if (!stuck) return;
    ++ends;
    for (const auto& participant : world.participants) {
      if (participant.generation != generations) fault = "stuck: " + name_of(world);
    }
  }

  static World after_arrival(const World& world, std::uint32_t rank) {
    World next = world;
    auto& self = next.participants[rank];
    self.waiting = true;
    next.arrived[self.generation] += world.bug == Bug::kArrivesTwice ? 2 : 1;
    const Word value = word_of(rank, self.generation, world.size);
    carry_out(next, rank, self.meeting.arrive(with_flag(value, rank)));
    return next;
  }

  static World after_delivery(const World& world, std::size_t channel) {
    World next = world;
    const Signal signal = next.channels[channel].front();
    next.channels[channel].pop_front();
    const std::uint32_t to = channel % world.size;
    auto& receiver = next.participants[to];
    // M1: what comes early is of the next generation.
    if (signal.generation == receiver.generation) {
      hear(next, to, signal);
    } else if (signal.generation == receiver.generation + 1) {
      receiver.early.push_back(signal);
    } else {
      next.fault = "a signal of a generation that is over or too far on";
    }
    return next;
  }
};

TEST(Meeting, EveryInterleavingLetsAllThroughTogether) {
  // Pinned: another number says that the explored behaviour has changed.
  const std::vector<std::size_t> states = {4, 29, 250, 669, 19889};
  for (std::uint32_t size = 1; size <= states.size(); ++size) {
    const std::uint32_t generations = size <= 3 ? 3 : 2;
    Explorer explorer{generations};
    explorer.explore(World(size, generations, Bug::kNone));
    EXPECT_EQ(explorer.fault, "") << size << " participants";
    EXPECT_EQ(explorer.ends, 1u);
    EXPECT_EQ(explorer.seen.size(), states[size - 1]) << size << " participants";
  }
}

TEST(Meeting, TheExplorerFindsPlantedBugs) {
  for (const Bug bug :
       {Bug::kSkipsLastRound, Bug::kForgetsEarly, Bug::kOwnWordOnly, Bug::kArrivesTwice}) {
    Explorer explorer{2};
    explorer.explore(World(4, 2, bug));
    EXPECT_NE(explorer.fault, "") << static_cast<int>(bug);
  }
}

TEST(Meeting, AlternatesPartnersAtDoublingDistance) {
  EXPECT_EQ(Meeting::rounds_of(1), 0u);
  EXPECT_EQ(Meeting::rounds_of(2), 1u);
  EXPECT_EQ(Meeting::rounds_of(3), 2u);
  EXPECT_EQ(Meeting::rounds_of(8), 3u);
  EXPECT_EQ(Meeting::rounds_of(64), 6u);
  Meeting meeting(1, 5);
  EXPECT_EQ(meeting.arrive({}).to, 2u);
  EXPECT_EQ(meeting.awaited_rank(), 0u);
  meeting.hear(2, {});
  EXPECT_FALSE(meeting.advance().send);
  meeting.hear(0, {});
  EXPECT_EQ(meeting.advance().to, 3u);
  EXPECT_EQ(meeting.awaited_rank(), 4u);
}

TEST(MeetingDeath, ASecondSignalOfARoundIsABug) {
  Meeting meeting(0, 2);
  meeting.hear(0, {});
  EXPECT_DEATH(meeting.hear(0, {}), "each signal comes once");
  EXPECT_DEATH(meeting.hear(1, {}), "belongs to a round");
}

TEST(MeetingDeath, TwoValuesAreABug) {
  Meeting meeting(0, 2);
  meeting.arrive({true, 1});
  meeting.hear(0, {true, 2});
  EXPECT_DEATH(meeting.advance(), "at most one participant");
}

}  // namespace
}  // namespace amasia::omp
