// SPDX-License-Identifier: Apache-2.0
// What comes over the network is read as it was written, or refused; and code has one position on
// all nodes.
#include "modules/nodes/messages.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "modules/nodes/program_image.hpp"

namespace amasia::nodes {
namespace {

std::vector<std::byte> bytes_of(const void* data, std::size_t size) {
  const auto* const first = static_cast<const std::byte*>(data);
  return {first, first + size};
}

TEST(Messages, TasksComeAsTheyWent) {
  const TasksHead head{.count = 3, .for_lifeline = 1};
  std::vector<std::byte> message = bytes_of(&head, sizeof head);
  const std::string bodies[] = {"a", "callable", "of seventeen byte"};
  for (std::uint32_t n = 0; n < 3; ++n) {
    append_task(message,
                {.number = n + 7,
                 .code = {.offset = 99, .object = 1},
                 .bytes = static_cast<std::uint32_t>(bodies[n].size()),
                 .result_bytes = 4,
                 .wants_value = 1},
                bodies[n].data());
  }
  const auto read = read_tasks(message);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->tasks.size(), 3u);
  for (std::uint32_t n = 0; n < 3; ++n) {
    EXPECT_EQ(read->tasks[n].head.number, n + 7);
    EXPECT_EQ(read->tasks[n].body.size(), bodies[n].size());
    EXPECT_EQ(std::memcmp(read->tasks[n].body.data(), bodies[n].data(), bodies[n].size()), 0);
  }
  // Neither a part of it, nor more than it.
  for (std::size_t size = 0; size < message.size(); ++size) {
    EXPECT_FALSE(read_tasks(std::span(message).first(size)).has_value()) << size;
  }
  message.push_back({});
  EXPECT_FALSE(read_tasks(message).has_value());
}

TEST(Messages, WhoIsStalledIsReadAsItWasSaid) {
  const std::string text = "a task waits\n";
  const auto written = [&](const StallHead& head, std::string_view rest) {
    std::vector<std::byte> message = bytes_of(&head, sizeof head);
    const auto more = bytes_of(rest.data(), rest.size());
    message.insert(message.end(), more.begin(), more.end());
    return message;
  };
  const StallNews news{5, MessageCounts{.sent = 3, .received = 4}};
  const StallHead head = head_of(news, 9, text.size());
  const auto message = written(head, text);
  const auto read = read_stall(message);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->round, 9u);
  EXPECT_EQ(read->news.serial, 5u);
  EXPECT_EQ(read->news.counts, news.counts);
  EXPECT_EQ(read->text, text);
  const auto awake = written(head_of({6, std::nullopt}, 9, 0), "");
  ASSERT_TRUE(read_stall(awake).has_value());
  EXPECT_EQ(read_stall(awake)->news.counts, std::nullopt);
  for (std::size_t size = 0; size < message.size(); ++size) {
    EXPECT_FALSE(read_stall(std::span(message).first(size)).has_value()) << size;
  }
  EXPECT_FALSE(read_stall(written(head, text + "more")).has_value());
  EXPECT_FALSE(read_stall(written({.is_stalled = 2}, "")).has_value());
  EXPECT_FALSE(read_stall(written({.sent = 1}, "")).has_value());  // not stalled: no counts, ...
  EXPECT_FALSE(read_stall(written({.text_bytes = 13}, text)).has_value());  // ... and no lines
  const std::string long_text(kMostText + 1, 'x');
  EXPECT_FALSE(read_stall(written({.is_stalled = 1, .text_bytes = kMostText + 1}, long_text)));
}

TEST(Messages, TasksOfOtherKindsAreRefused) {
  const auto refused = [](TaskHead head) {
    const std::vector<std::byte> room(head.bytes <= kMostBytes ? head.bytes : 8);
    std::vector<std::byte> message = bytes_of(&head, sizeof head);
    message.resize(message.size() + base::round_up(room.size(), 8));
    std::span<const std::byte> rest(message);
    return !take_task(rest).has_value();
  };
  EXPECT_FALSE(refused({.bytes = 8}));
  EXPECT_TRUE(refused({.bytes = 0}));
  EXPECT_TRUE(refused({.bytes = kMostBytes + 1}));
  EXPECT_TRUE(refused({.bytes = 8, .result_bytes = kMostBytes + 1}));
  EXPECT_TRUE(refused({.bytes = 8, .wants_value = 2}));
  EXPECT_TRUE(refused({.bytes = 8, .reserved = 1}));
}

TEST(Messages, AnswersAreReadOrRefused) {
  const auto read = [](AnswerHead head) {
    std::vector<std::byte> message = bytes_of(&head, sizeof head);
    message.resize(message.size() + head.value_bytes + head.text_bytes);
    const auto answer = read_answer(message);
    message.push_back({});
    EXPECT_FALSE(read_answer(message).has_value());
    return answer;
  };
  EXPECT_TRUE(read({.flags = kHasValue, .value_bytes = 3})->has_value());
  EXPECT_TRUE(read({.flags = kHasEnd})->has_end());
  EXPECT_TRUE(read({.flags = kHasValue, .text_bytes = 3})->value_failed());
  const auto both =
      read({.flags = kHasValue | kHasEnd | kTextIsOfEnd, .value_bytes = 3, .text_bytes = 2});
  ASSERT_TRUE(both.has_value());
  EXPECT_TRUE(both->end_failed());
  EXPECT_FALSE(both->value_failed());
  EXPECT_FALSE(read({}).has_value());
  EXPECT_FALSE(read({.flags = 8}).has_value());
  EXPECT_FALSE(read({.flags = kTextIsOfEnd}).has_value());
  EXPECT_FALSE(read({.flags = kHasValue | kTextIsOfEnd, .text_bytes = 1}).has_value());
  EXPECT_FALSE(read({.flags = kHasEnd, .text_bytes = 1}).has_value());
  EXPECT_FALSE(read({.flags = kHasEnd, .value_bytes = 1}).has_value());
  EXPECT_FALSE(read({.flags = kHasValue, .value_bytes = 1, .text_bytes = 1}).has_value());
  EXPECT_FALSE(read({.flags = kHasEnd, .failed_on = base::kMaxNodes}).has_value());
}

// No bytes lead out of the message.
TEST(Messages, AnythingMayCome) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> message(random() % 120);
    for (std::byte& one : message) {
      one = static_cast<std::byte>(random() % 8 == 0 ? random() : random() % 3);
    }
    const auto inside = [&](const void* at, std::size_t size) {
      const auto* const first = static_cast<const std::byte*>(at);
      return size == 0 ||
             (first >= message.data() && first + size <= message.data() + message.size());
    };
    if (const auto tasks = read_tasks(message)) {
      for (const auto& task : tasks->tasks) {
        EXPECT_TRUE(inside(task.body.data(), task.body.size()));
      }
    }
    if (const auto answer = read_answer(message)) {
      EXPECT_TRUE(inside(answer->value.data(), answer->value.size()));
      EXPECT_TRUE(inside(answer->text.data(), answer->text.size()));
    }
  }
}

void some_function() {}

TEST(ProgramImage, CodeHasAPosition) {
  const ProgramImage image = ProgramImage::of_this_process();
  const auto* const function = reinterpret_cast<const void*>(&some_function);
  const auto position = image.position_of(function);
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(position->object, 0u);
  EXPECT_EQ(image.function_at(*position), function);
  const auto library = image.position_of(reinterpret_cast<const void*>(&std::printf));
  ASSERT_TRUE(library.has_value());
  EXPECT_NE(library->object, 0u);
  EXPECT_NE(image.description().find("libc.so"), std::string::npos);
  // Data, no object, beyond its end.
  const int on_the_stack = 0;
  EXPECT_FALSE(image.position_of(&on_the_stack).has_value());
  EXPECT_EQ(image.function_at({.offset = position->offset, .object = 1000}), nullptr);
  EXPECT_EQ(image.function_at({.offset = std::uint64_t{1} << 40, .object = 0}), nullptr);
}

TEST(ProgramImage, TellsProgramsApart) {
  const std::string mine = "prog\tabc\nlibm.so\t123\n";
  const NodeId me{2}, them{0};
  EXPECT_TRUE(compare_images(mine, me, mine, them).ok());
  EXPECT_EQ(compare_images(mine, me, "prog\tabd\nlibm.so\t123\n", them).error().message,
            "the nodes are not of one program: 'prog' has build id abc on node 2, and build id abd "
            "on node 0");
  EXPECT_EQ(compare_images(mine, me, "prog\tabc\n", them).error().message,
            "the nodes are not of one program: node 2 has loaded 'libm.so' where node 0 has "
            "nothing more");
  EXPECT_EQ(compare_images("prog\tsize 16\n", me, "prog\tsize 32\n", them).error().message,
            "the nodes are not of one program: 'prog' has 16 bytes of code, without a build id on "
            "node 2, and 32 bytes of code, without a build id on node 0");
}

}  // namespace
}  // namespace amasia::nodes
