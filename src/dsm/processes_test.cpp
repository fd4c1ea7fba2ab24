// SPDX-License-Identifier: Apache-2.0
// The engine as it is used: a process for each node, true addresses, UCX.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "dsm/test_processes.hpp"

namespace amasia::dsm {
namespace {

class ProcessesTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t nodes() const { return GetParam(); }
  ProcessSettings settings() const {
    ProcessSettings made;
    made.transports = "tcp";
    return made;
  }
};

TEST_P(ProcessesTest, AtomicCountersSumUp) {
  constexpr std::uint64_t kRounds = 500;
  constexpr Bytes kPages = 8;
  const auto body = [](const ProcessNode& node) {
    const auto counter = [&](Bytes page) {
      return node.at<std::atomic<std::uint64_t>>(static_cast<std::uint32_t>(page) % node.count(),
                                                 page * base::kPageSize);
    };
    std::minstd_rand random(node.self() + 1);
    for (std::uint64_t i = 0; i < kRounds; ++i) counter(random() % kPages)->fetch_add(1);
    node.meet();
    for (Bytes page = 0; page < kPages; ++page) {
      node.board.figures[node.self()][0] += counter(page)->load();
    }
  };
  const auto after = [&](SharedBoard& board) {
    for (std::uint32_t k = 0; k < nodes(); ++k) EXPECT_EQ(board.figures[k][0], kRounds * nodes());
  };
  EXPECT_EQ(run_processes(nodes(), settings(), body, after), "");
}

TEST_P(ProcessesTest, AnArrayIsTheSameOnAllNodes) {
  constexpr Bytes kPages = 1000;
  const auto body = [](const ProcessNode& node) {
    auto* const words = node.at<std::uint64_t>(0);
    constexpr Bytes kWords = kPages * base::kPageSize / sizeof(std::uint64_t);
    const Bytes share = kWords / node.count();
    const Bytes begin = share * node.self();
    const Bytes end = node.self() + 1 == node.count() ? kWords : begin + share;
    for (Bytes i = begin; i < end; ++i) words[i] = i;
    node.meet();
    std::uint64_t wrong = 0;
    for (Bytes i = 0; i < kWords; ++i) wrong += words[i] != i;
    node.board.figures[node.self()][0] = wrong;
  };
  const auto after = [&](SharedBoard& board) {
    for (std::uint32_t k = 0; k < nodes(); ++k) EXPECT_EQ(board.figures[k][0], 0U);
  };
  EXPECT_EQ(run_processes(nodes(), settings(), body, after), "");
}

alignas(base::kPageSize) char program_globals[2 * base::kPageSize];

TEST_P(ProcessesTest, GlobalsAreThoseOfTheOrigin) {
  auto with_globals = settings();
  const auto begin = reinterpret_cast<std::uintptr_t>(program_globals);
  with_globals.globals = {begin, begin + sizeof program_globals};
  std::strcpy(program_globals, "from the program's image");
  const auto body = [](const ProcessNode& node) {
    char* const second = program_globals + base::kPageSize;
    if (node.self() == 1) std::strcpy(second, "from node 1");
    node.meet();
    node.board.figures[node.self()][0] =
        (std::strcmp(program_globals, "from the program's image") == 0 ? 1 : 0) +
        (std::strcmp(second, "from node 1") == 0 ? 2 : 0);
  };
  const auto after = [&](SharedBoard& board) {
    for (std::uint32_t k = 0; k < nodes(); ++k) EXPECT_EQ(board.figures[k][0], 3U);
  };
  EXPECT_EQ(run_processes(nodes(), with_globals, body, after), "");
}

INSTANTIATE_TEST_SUITE_P(UcxTcp, ProcessesTest, ::testing::Values(2U, 3U, 4U),
                         [](const auto& test) { return std::to_string(test.param) + "Nodes"; });

}  // namespace
}  // namespace amasia::dsm
