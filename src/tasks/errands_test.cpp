// SPDX-License-Identifier: Apache-2.0
#include "tasks/errands.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "tasks/interleavings.hpp"

namespace amasia::tasks::detail {
namespace {

using model::Exploration;
using model::Explorer;
using model::ModelAtomics;
using model::Trial;

struct Node {
  Node* next = nullptr;
  std::size_t maker = 0;
  int number = 0;
};

template <Bug kBug>
struct Shared {
  CallLine<Node, ModelAtomics<kBug>> line;
  std::array<std::array<Node, 2>, 2> nodes;
  std::array<int, 2> seen{};
  bool in_order = true;

  void add(std::size_t maker, int count) {
    for (int number = 0; number < count; ++number) {
      Node& node = nodes[maker][static_cast<std::size_t>(number)];
      node.maker = maker;
      node.number = number;
      line.add(&node);
    }
  }
  void take() {
    for (Node* node = line.take_all(); node != nullptr; node = node->next) {
      in_order = in_order && seen[node->maker]++ == node->number;
    }
  }
};

// Two threads add nodes while a third takes: all arrive, once, in their maker's order.
template <Bug kBug = Bug::kNone>
Exploration explore(int of_first, int of_second) {
  return Explorer([=](Trial& run) {
           auto shared = std::make_shared<Shared<kBug>>();
           run.add_thread([=] { shared->add(0, of_first); });
           run.add_thread([=] { shared->add(1, of_second); });
           run.add_thread([=] { shared->take(); });
           run.at_end([=] {
             shared->take();
             const bool all = shared->seen[0] == of_first && shared->seen[1] == of_second;
             return std::string(!shared->in_order ? "out of order" : all ? "" : "lost");
           });
         })
      .explore();
}

TEST(CallLine, KeepsAllInTheirMakersOrder) {
  const Exploration done = explore(2, 1);
  EXPECT_EQ(done.violation, "") << done.order;
  EXPECT_TRUE(done.complete) << done.runs;
}

TEST(CallLine, PlantedBugsAreCaught) {
  EXPECT_EQ((explore<Bug::kLineTakesNewestFirst>(2, 1).violation), "out of order");
  EXPECT_EQ((explore<Bug::kLineTakesInTwoSteps>(2, 1).violation), "lost");
}

TEST(PollPace, CostsAtMostItsShareOfABusyWorkersTime) {
  PollPace pace;
  pace.progressed(1000);
  Nanos now = 1000, polling = 0;
  while (now < 1'000'000) {
    if (pace.is_due(now)) {
      pace.found_nothing(now, now + 300);
      polling += 300;
      now += 300;
    }
    now += 70;  // a task
  }
  EXPECT_LE(polling * PollPace::kShare, now);
  EXPECT_GE(polling * PollPace::kShare, now / 2);
}

TEST(PollPace, RestsLongerTheLongerItHasWaited) {
  PollPace pace;
  pace.progressed(5);
  EXPECT_EQ(pace.rest(5), PollPace::kKeepOn);
  EXPECT_EQ(pace.rest(5 + PollPace::kSpinNs - 1), PollPace::kKeepOn);
  EXPECT_EQ(pace.rest(5 + PollPace::kSpinNs), 0);
  EXPECT_EQ(pace.rest(5 + PollPace::kEagerNs - 1), 0);
  EXPECT_EQ(pace.rest(5 + PollPace::kEagerNs), PollPace::kEagerNs / 8);
  EXPECT_EQ(pace.rest(1'000'000'000), PollPace::kLongestNs);
  pace.progressed(2'000'000'000);
  EXPECT_EQ(pace.rest(2'000'000'001), PollPace::kKeepOn);
}

TEST(PollPace, PollsSeldomBetweenSleeps) {
  PollPace pace;
  pace.progressed(0);
  EXPECT_EQ(pace.polls_before_rest(), PollPace::kPolls);
  EXPECT_EQ(pace.rest(PollPace::kEagerNs - 1), 0);
  EXPECT_EQ(pace.polls_before_rest(), PollPace::kPolls);
  // With nothing found for 20 ms, and polls of 1 us, all of them together, from the first sleep on.
  Nanos polling = 0;
  for (Nanos now = PollPace::kEagerNs; now < 20'000'000;) {
    now += pace.rest(now);
    EXPECT_EQ(pace.polls_before_rest(), PollPace::kPollsAfterSleep);
    for (std::uint32_t n = 0; n < pace.polls_before_rest(); ++n) {
      pace.found_nothing(now, now + 1'000);
      polling += 1'000;
      now += 1'000;
    }
  }
  EXPECT_LT(polling, 20'000'000 / 100);
  pace.progressed(20'000'000);
  EXPECT_EQ(pace.rest(20'000'000), PollPace::kKeepOn);
  EXPECT_EQ(pace.polls_before_rest(), PollPace::kPolls);
}

TEST(PollPace, TakesANewOperationForProgress) {
  PollPace pace;
  const Nanos now = 3 * PollPace::kEagerNs;
  pace.progressed(0);
  pace.found_nothing(now, now + 100);
  EXPECT_FALSE(pace.is_due(now + 200)) << "a poll of 100 ns was just made";
  EXPECT_GT(pace.rest(now + 200), 0);
  pace.began_more();
  EXPECT_TRUE(pace.is_due(now + 200));
  EXPECT_EQ(pace.rest(now + 200), PollPace::kKeepOn);
  pace.began_more();
  pace.found_nothing(now + 200, now + 300);
  EXPECT_FALSE(pace.is_due(now + 400)) << "polled since";
  EXPECT_EQ(pace.rest(now + 400), PollPace::kKeepOn);
}

TEST(PollPace, TakesLongPollsForProgress) {
  PollPace pace;
  pace.progressed(0);
  Nanos now = PollPace::kEagerNs;
  pace.found_nothing(now - 100, now);  // quick
  EXPECT_GT(pace.rest(now), 0);
  pace.found_nothing(now, now + 5'000);  // cold
  EXPECT_GT(pace.rest(now + 5'000), 0);
  now += 10'000;
  pace.found_nothing(now, now + 100);
  pace.found_nothing(now + 100, now + 5'100);
  EXPECT_EQ(pace.rest(now + 5'100), PollPace::kKeepOn);
  // A library whose polls always take long does nothing special.
  PollPace slow;
  slow.progressed(0);
  for (now = 0; now < 2 * PollPace::kEagerNs; now += 9'000) slow.found_nothing(now, now + 9'000);
  EXPECT_GT(slow.rest(now), 0);
}

}  // namespace
}  // namespace amasia::tasks::detail
