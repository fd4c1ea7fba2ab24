// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

namespace amasia::omp {
namespace {

constexpr NodeId kOne{1};

TEST(LineAssembler, GivesWholeLinesOnly) {
  LineAssembler lines;
  EXPECT_EQ(lines.add("half"), "");
  EXPECT_EQ(lines.rest(), "half");
  EXPECT_EQ(lines.add(" and half\nrest"), "half and half\n");
  EXPECT_EQ(lines.take_rest(), "rest");
  EXPECT_EQ(lines.take_rest(), "");
  EXPECT_EQ(lines.add("\n"), "\n");
}

TEST(LineAssembler, CutsLinesWithoutEnd) {
  LineAssembler lines;
  const std::string much(LineAssembler::kLongestLine + 1, 'x');
  EXPECT_EQ(lines.add(much), much);
  EXPECT_EQ(lines.take_rest(), "");
}

class Collector final : public fabric::Handler {
 public:
  void on_message(const fabric::Incoming& message) override {
    const auto text = message.body.subspan(sizeof(OutputHead));
    text_.append(reinterpret_cast<const char*>(text.data()), text.size());
  }
  std::string text_;
};

// The variable stands for one in managed memory that no other node serves any more.
[[noreturn]] void print_and_lose_the_variable() {
  const auto network = fabric::make_loopback(2);
  Collector collector;
  network->fabric(base::kOrigin).set_handler(kOutputFirst, kOutputLast, &collector);
  auto source = OutputSource::redirect(network->fabric(kOne));
  if (!source.ok()) _exit(2);
  std::printf("printed\n");
  stdout = reinterpret_cast<std::FILE*>(8);
  if (!source.value()->flush() || source.value()->flush()) _exit(3);  // sent once
  while (network->fabric(base::kOrigin).poll(8) > 0) continue;
  source.value().reset();
  _exit(collector.text_ == "printed\n" ? 0 : 1);
}

TEST(OutputSourceDeathTest, FlushesAndEndsWithoutTheProgramsVariables) {
  EXPECT_EXIT(print_and_lose_the_variable(), testing::ExitedWithCode(0), "");
}

// What whoever has a copy of the descriptor finds in the file.
std::string contents_of(int file) {
  char bytes[256];
  const ssize_t got = pread(file, bytes, sizeof bytes, 0);
  return {bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

// A node that is killed takes with it what it has read from its pipe: so that is in a file too.
[[noreturn]] void begin_a_line() {
  const auto network = fabric::make_loopback(2);
  Collector collector;
  network->fabric(base::kOrigin).set_handler(kOutputFirst, kOutputLast, &collector);
  auto source = OutputSource::redirect(network->fabric(kOne));
  if (!source.ok()) _exit(2);
  const int begun = source.value()->last_words()[0];
  for (const std::string_view part : {"a line\nha", "lf"}) {
    if (write(STDOUT_FILENO, part.data(), part.size()) < 0) _exit(3);
    const std::string_view expected = part == "lf" ? "half" : "ha";
    while (contents_of(begun) != expected) usleep(100);
  }
  const auto arrived = [&] {
    while (network->fabric(base::kOrigin).poll(8) > 0) continue;
    return collector.text_;
  };
  if (arrived() != "a line\n") _exit(4);
  source.value()->flush();
  if (arrived() != "a line\nhalf" || !contents_of(begun).empty()) _exit(5);
  source.value().reset();
  _exit(0);
}

TEST(OutputSourceDeathTest, KeepsTheLineThatHasBegunInAFile) {
  EXPECT_EXIT(begin_a_line(), testing::ExitedWithCode(0), "");
}

class Answers final : public fabric::Handler {
 public:
  void on_message(const fabric::Incoming& message) override {
    OutputMark mark;
    if (message.type != kOutputWritten || message.body.size() != sizeof mark) return;
    std::memcpy(&mark, message.body.data(), sizeof mark);
    last_ = mark.number;
  }
  std::uint32_t last_ = 0;
};

TEST(OutputSink, AnswersWhenWhatCameBeforeIsWritten) {
  const auto network = fabric::make_loopback(2);
  fabric::Fabric& origin = network->fabric(base::kOrigin);
  fabric::Fabric& node = network->fabric(kOne);
  Answers answers;
  node.set_handler(kOutputFirst, kOutputLast, &answers);
  testing::internal::CaptureStdout();
  {
    OutputSink sink(origin);
    const OutputHead head{Stream::kStandard};
    const std::string_view text = "a line\nand";
    node.send(base::kOrigin, kOutput, fabric::bytes_of(head), std::as_bytes(std::span(text)));
    node.send(base::kOrigin, kOutputAsk, fabric::bytes_of(OutputMark{7}));
    while (answers.last_ != 7) {
      origin.poll(8);
      node.poll(8);
      std::this_thread::yield();
    }
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "a line\nand");
  }
}

}  // namespace
}  // namespace amasia::omp
