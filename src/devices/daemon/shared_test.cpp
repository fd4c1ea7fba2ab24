// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/shared.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>

namespace amasia::devices {
namespace {

TEST(SharedSegments, LiveAsLongAsSomeoneUsesThem) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    SharedSegments segments;
    // The model: who uses what, how often.
    std::map<std::pair<std::string, std::uint32_t>, int> uses;
    std::map<std::string, Bytes> sizes;
    const auto used = [&](const std::string& name) {
      int sum = 0;
      for (const auto& [key, count] : uses) sum += key.first == name ? count : 0;
      return sum > 0;
    };
    for (int step = 0; step < 300; ++step) {
      const std::string name(1, static_cast<char>('a' + random() % 3));
      const std::uint32_t client = random() % 4;
      switch (random() % 5) {
        case 0:
        case 1: {
          const Bytes size = random() % 3 * 10;
          const bool create = random() % 2 == 0;
          const auto answer = segments.open(ClientId(client), name, size, create);
          const bool there = used(name);
          if (!there) sizes[name] = size;
          const int code = !there && !create                ? ENOENT
                           : !there && size == 0            ? EINVAL
                           : there && size > sizes.at(name) ? EINVAL
                                                            : 0;
          ASSERT_EQ(answer.code, code);
          if (code != 0) break;
          ASSERT_EQ(answer.takes_memory, !there);
          ASSERT_EQ(answer.size, sizes.at(name));
          ++uses[{name, client}];
          break;
        }
        case 2:
        case 3: {
          int& count = uses[{name, client}];
          const bool had = count > 0;
          count -= had ? 1 : 0;
          ASSERT_EQ(segments.close(ClientId(client), name), had && !used(name));
          break;
        }
        default: {
          std::set<std::string> before;
          for (const char* one : {"a", "b", "c"}) {
            if (used(one)) before.insert(one);
          }
          for (const char* one : {"a", "b", "c"}) uses[{one, client}] = 0;
          for (const std::string& gone : segments.leave(ClientId(client))) {
            ASSERT_FALSE(used(gone));
            ASSERT_EQ(before.erase(gone), 1U);
          }
          for (const std::string& stays : before) ASSERT_TRUE(used(stays));
        }
      }
    }
  }
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
