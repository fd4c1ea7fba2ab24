// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/shared.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>

namespace amasia::devices {
namespace {

// What each name stands for, by the words of the header.
struct SegmentModel {
  bool there = false;
  Bytes size = 0;
  int maker = -1;
  std::map<std::uint32_t, int> uses;
  int used() const {
    int sum = 0;
    for (const auto& [client, count] : uses) sum += count;
    return sum;
  }
  // True: it has just gone.
  bool goes() {
    const bool gone = there && used() == 0 && maker < 0;
    if (gone) there = false;
    return gone;
  }
};

TEST(SharedSegments, LiveAsLongAsSomeoneUsesThemOrTheirMakerStays) {
  std::mt19937 random(3);
  int found_unused = 0, made_anew = 0;
  for (int round = 0; round < 100; ++round) {
    SharedSegments segments;
    std::map<std::string, SegmentModel> model;
    for (int step = 0; step < 300; ++step) {
      const std::string name(1, static_cast<char>('a' + random() % 3));
      const std::uint32_t client = random() % 4;
      SegmentModel& one = model[name];
      switch (random() % 5) {
        case 0:
        case 1: {
          const Bytes size = random() % 3 * 10;
          const bool create = random() % 2 == 0;
          const auto answer = segments.open(ClientId(client), name, size, create);
          const bool makes = create && (!one.there || one.used() == 0);
          const int code = makes                      ? (size == 0 ? EINVAL : 0)
                           : !one.there               ? ENOENT
                           : size > one.size          ? EINVAL
                                                      : 0;
          ASSERT_EQ(answer.code, code);
          if (code != 0) break;
          ASSERT_EQ(answer.takes_memory, makes);
          made_anew += makes && one.there;
          found_unused += !makes && one.used() == 0;
          if (makes) one = {true, size, static_cast<int>(client), {}};
          ASSERT_EQ(answer.size, one.size);
          ++one.uses[client];
          break;
        }
        case 2:
        case 3: {
          const bool had = one.there && one.uses[client] > 0;
          if (had) --one.uses[client];
          ASSERT_EQ(segments.close(ClientId(client), name), had && one.goes());
          break;
        }
        default: {
          std::set<std::string> expected;
          for (auto& [other, segment] : model) {
            segment.uses[client] = 0;
            if (segment.maker == static_cast<int>(client)) segment.maker = -1;
            if (segment.goes()) expected.insert(other);
          }
          const auto gone = segments.leave(ClientId(client));
          ASSERT_EQ(std::set<std::string>(gone.begin(), gone.end()), expected);
        }
      }
    }
  }
  EXPECT_GT(found_unused, 100) << "the maker had freed it, and another one found it";
  EXPECT_GT(made_anew, 100);
}

TaskPacket about(std::int32_t process, std::uint64_t task, bool wait, std::uint32_t request) {
  TaskPacket packet;
  packet.head.request = request;
  packet.process = process;
  packet.task = task;
  packet.wait = wait ? 1 : 0;
  return packet;
}

TEST(SharedTasks, AreAnsweredWhenTheyEnd) {
  SharedTasks tasks;
  const ClientId owner(1), other(2);
  std::vector<SharedTasks::Answer> answers;
  EXPECT_TRUE(tasks.watch(other, about(100, 0, true, 1), &answers));
  ASSERT_EQ(answers.size(), 1U) << "what is not known is not waited for";
  EXPECT_EQ(answers[0].packet.state, SharedTaskState::kUnknown);
  answers.clear();
  EXPECT_TRUE(tasks.publish(owner, 100, 0));
  EXPECT_TRUE(tasks.watch(other, about(100, 0, true, 2), &answers));
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(tasks.watch(other, about(100, 0, false, 3), &answers));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].packet.state, SharedTaskState::kRuns);
  answers = tasks.end(owner, 0, 7);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].client, other);
  EXPECT_EQ(answers[0].request, 2U);
  EXPECT_EQ(answers[0].packet.state, SharedTaskState::kEnded);
  EXPECT_EQ(answers[0].packet.error, 7U);
  EXPECT_TRUE(tasks.end(owner, 0, 8).empty());
}

TEST(SharedTasks, FailWhenTheirOwnerHasGone) {
  SharedTasks tasks;
  std::vector<SharedTasks::Answer> answers;
  tasks.publish(ClientId(1), 100, 5);
  tasks.watch(ClientId(2), about(100, 5, true, 9), &answers);
  tasks.watch(ClientId(3), about(100, 5, true, 9), &answers);
  EXPECT_TRUE(tasks.leave(ClientId(3), 1).empty());
  answers = tasks.leave(ClientId(1), 42);
  ASSERT_EQ(answers.size(), 1U) << "who has gone is not told";
  EXPECT_EQ(answers[0].packet.error, 42U);
}

}  // namespace
}  // namespace amasia::devices
