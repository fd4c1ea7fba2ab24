// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace amasia::omp {
namespace {

constexpr NodeId kOne{1}, kTwo{2};

TEST(LineAssembler, WritesWholeLinesOnly) {
  LineAssembler lines;
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, "half"), "");
  EXPECT_EQ(lines.add(kTwo, Stream::kStandard, "a line\n"), "a line\n");
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, " and half\nrest"), "half and half\n");
  EXPECT_EQ(lines.take_rest(kOne, Stream::kStandard), "rest");
  EXPECT_EQ(lines.take_rest(kOne, Stream::kStandard), "");
}

TEST(LineAssembler, KeepsStreamsApart) {
  LineAssembler lines;
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, "out"), "");
  EXPECT_EQ(lines.add(kOne, Stream::kError, "error\n"), "error\n");
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, "\n"), "out\n");
}

TEST(LineAssembler, CutsLinesWithoutEnd) {
  LineAssembler lines;
  const std::string much(LineAssembler::kLongestLine + 1, 'x');
  EXPECT_EQ(lines.add(kOne, Stream::kStandard, much), much);
  EXPECT_EQ(lines.take_rest(kOne, Stream::kStandard), "");
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
    node.send(base::kOrigin, kOutputFlush, fabric::bytes_of(head));
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
