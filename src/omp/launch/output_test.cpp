// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

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
  source.value()->flush();
  while (network->fabric(base::kOrigin).poll(8) > 0) continue;
  source.value().reset();
  _exit(collector.text_ == "printed\n" ? 0 : 1);
}

TEST(OutputSourceDeathTest, FlushesAndEndsWithoutTheProgramsVariables) {
  EXPECT_EXIT(print_and_lose_the_variable(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace amasia::omp
