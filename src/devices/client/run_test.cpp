// SPDX-License-Identifier: Apache-2.0
#include "devices/client/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "devices/client/task.hpp"

namespace amasia::devices {
namespace {

TEST(Runs, AreAsLongAsOthersMayWaitForThem) {
  constexpr std::uint32_t kMost = 64;
  EXPECT_EQ(run_length_max(0, kMost), 1U) << "not known";
  EXPECT_EQ(run_length_max(kBriefTask + 1, kMost), 1U);
  EXPECT_EQ(run_length_max(100, 1), 1U) << "the daemon allows none";
  EXPECT_EQ(run_length_max(100, 0), 1U);
  EXPECT_EQ(run_length_max(100, 3), 3U);
  for (Nanos expected = 1; expected <= kBriefTask; expected += 7) {
    const std::uint32_t length = run_length_max(expected, kMost);
    ASSERT_LE(length * std::max(expected, kLeastTask), kRunTime);
    ASSERT_LE(length, kMost);
    ASSERT_GT(length, 20U) << "so brief, and hardly any together";
  }
}

struct Alike : testing::Test {
  Alike() : buffer(std::make_shared<ResidentBuffer>(1, nullptr, 64)) {}
  std::unique_ptr<Task> task() const {
    auto made = std::make_unique<Task>(nullptr);
    made->identity = 5;
    made->allowed = 3;
    made->arguments.resize(2);
    made->arguments[0].flags = MCL_ARG_SCALAR;
    made->arguments[1].flags = MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_RESIDENT;
    made->arguments[1].resident = buffer;
    return made;
  }
  std::shared_ptr<ResidentBuffer> buffer;
};

TEST_F(Alike, ValuesAndPartsMayDiffer) {
  const auto first = task(), second = task();
  second->arguments[0].value.resize(4);
  second->arguments[1].offset = 16;
  second->number = 9;
  EXPECT_TRUE(are_alike(*first, *second));
}

TEST_F(Alike, WhatTheDaemonReckonsWithMayNot) {
  const std::function<void(Task&)> changes[] = {
      [](Task& one) { one.identity = 6; },
      [](Task& one) { one.identity = 0; },
      [](Task& one) { one.allowed = 1; },
      [](Task& one) { one.preferred = 1; },
      [](Task& one) { one.priority = 1; },
      [](Task& one) { one.global[1] = 2; },
      [](Task& one) { one.flags = MCL_FLAG_NO_RES; },
      [](Task& one) { one.arguments.pop_back(); },
      [](Task& one) { one.arguments[1].flags |= MCL_ARG_OUTPUT; },
      [](Task& one) { one.arguments[1].resident = nullptr; },
      [](Task& one) { one.arguments[1].flags = MCL_ARG_SCALAR; },
      [](Task& one) {
        one.arguments[1].resident = std::make_shared<ResidentBuffer>(2, nullptr, 64);
      },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    const auto first = task(), second = task();
    changes[i](*second);
    EXPECT_FALSE(are_alike(*first, *second)) << "change " << i;
    EXPECT_FALSE(are_alike(*second, *first)) << "change " << i;
  }
}

TEST(BriefTimes, BelieveSoonWhatTakesLongAndInTimeWhatIsBrief) {
  BriefTimes times;
  EXPECT_EQ(times.expected(4), 0);
  times.learn(2, 1000);
  EXPECT_EQ(times.expected(4), 2000);
  times.learn(2, 80'000);
  EXPECT_EQ(times.expected(2), 2000) << "one says little";
  for (int i = 0; i < 7; ++i) times.learn(2, 80'000);
  EXPECT_EQ(times.expected(2), 80'000);
  for (int i = 0; i < 10; ++i) times.learn(2, 1000);
  EXPECT_GT(times.expected(2), kBriefTask);
  for (int i = 0; i < 30; ++i) times.learn(2, 1000);
  EXPECT_LT(times.expected(2), kBriefTask);
  times.learn(0, 5);
  times.learn(2, 0);
  EXPECT_GE(times.expected(2), 1000);
}

TEST(Runs, EndAsAllTheirTasksDo) {
  amasia::devices::Run run;
  run.left = 3;
  const auto ended = [](Nanos from, Nanos until) {
    Outcome outcome;
    outcome.run_began = from;
    outcome.run_ended = until;
    return outcome;
  };
  EXPECT_FALSE(run.note_end(ended(200, 230), 0, 5));
  EXPECT_FALSE(run.note_end(ended(0, 0), 4, 0)) << "it never ran";
  EXPECT_TRUE(run.note_end(ended(100, 120), 0, 6));
  EXPECT_EQ(run.ended.run_began, 100);
  EXPECT_EQ(run.ended.run_ended, 230);
  EXPECT_EQ(run.ended.idle, 130 - 50);
  EXPECT_EQ(run.ended.copied, 11U);
  EXPECT_EQ(run.ended.failed, 1);
  EXPECT_EQ(run.ended.failure, 4);
  EXPECT_EQ(run.ended.copy_began, 0);
}

TEST(QueuedRuns, AreWorthAWakeUpWhereMoreDevicesHaveRoomThanAreSpokenFor) {
  const QueuedRun known_to_0{1, 0b001, true}, known_to_both{2, 0b011, true};
  const QueuedRun unheard_for_0{3, 0b001, false}, unheard_for_1{4, 0b010, false};
  const QueuedRun unheard_for_both{5, 0b011, false};
  const auto worth = [](std::vector<QueuedRun> queued, DeviceSet room) {
    const bool is = is_worth_waking(queued, room);
    std::reverse(queued.begin(), queued.end());
    EXPECT_EQ(is_worth_waking(queued, room), is) << "their order says nothing";
    return is;
  };
  EXPECT_FALSE(worth({}, 0b111));
  EXPECT_FALSE(worth({known_to_both}, 0b111)) << "the daemon knows";
  EXPECT_FALSE(worth({unheard_for_0}, 0b110)) << "only devices that it may not have";
  EXPECT_TRUE(worth({unheard_for_0}, 0b001));
  EXPECT_FALSE(worth({known_to_0, unheard_for_0}, 0b111));
  EXPECT_TRUE(worth({known_to_0, unheard_for_1}, 0b111)) << "that one will not take it";
  EXPECT_TRUE(worth({known_to_0, unheard_for_both}, 0b011));
  EXPECT_TRUE(worth({known_to_0, unheard_for_both}, 0b010)) << "that one is not in its way";
  EXPECT_FALSE(worth({known_to_0, unheard_for_both}, 0b001));
  EXPECT_FALSE(worth({known_to_0, known_to_both, unheard_for_both}, 0b011));
  EXPECT_TRUE(worth({known_to_both, unheard_for_0, unheard_for_both}, 0b011));
}

}  // namespace
}  // namespace amasia::devices
