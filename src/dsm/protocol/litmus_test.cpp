// SPDX-License-Identifier: Apache-2.0
// The classic litmus tests, each thread on a node of its own, x and y on two pages (and once on
// one): memory is sequentially consistent, so exactly the outcomes of some interleaving appear.
// That all of those appear shows that the model does interleave.
#include <gtest/gtest.h>

#include "dsm/protocol/explorer.hpp"

namespace amasia::dsm::protocol {
namespace {

constexpr std::uint8_t kX = 0, kY = 1;
constexpr Operation store(std::uint8_t page, std::uint8_t value) { return {true, page, value}; }
constexpr Operation load(std::uint8_t page) { return {false, page, 0}; }

using Programs = std::vector<std::vector<Operation>>;
using Outcomes = std::set<std::vector<std::uint8_t>>;

// The oracle: all interleavings over one memory.
void interleave(const Programs& programs, std::vector<std::size_t> next,
                std::array<std::uint8_t, 2> memory, std::vector<std::vector<std::uint8_t>> loaded,
                Outcomes& outcomes) {
  bool done = true;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (next[i] == programs[i].size()) continue;
    done = false;
    auto next_after = next;
    auto memory_after = memory;
    auto loaded_after = loaded;
    const Operation& operation = programs[i][next_after[i]++];
    if (operation.writes) {
      memory_after[operation.page] = operation.value;
    } else {
      loaded_after[i].push_back(memory[operation.page]);
    }
    interleave(programs, next_after, memory_after, loaded_after, outcomes);
  }
  if (!done) return;
  std::vector<std::uint8_t> all;
  for (const auto& values : loaded) all.insert(all.end(), values.begin(), values.end());
  outcomes.insert(all);
}

template <int kThreads>
void expect_sequentially_consistent(const Programs& programs, Grain grain,
                                    const std::vector<std::uint8_t>& forbidden) {
  ModelSettings settings;
  settings.grain = grain;
  settings.prefetch = false;
  settings.spurious_faults = false;
  Explorer<kThreads, 2, kThreads> explorer(settings, 6'000'000);
  explorer.set_programs(programs);
  const Exploration found = explorer.explore_safety();
  EXPECT_EQ(found.violation, "") << found.trace;
  EXPECT_TRUE(found.complete) << found.states;
  Outcomes expected;
  interleave(programs, std::vector<std::size_t>(programs.size()), {},
             std::vector<std::vector<std::uint8_t>>(programs.size()), expected);
  EXPECT_EQ(found.outcomes, expected);
  EXPECT_EQ(found.outcomes.count(forbidden), 0U);
}

TEST(ModelLitmus, StoreBuffering) {
  expect_sequentially_consistent<2>({{store(kX, 1), load(kY)}, {store(kY, 1), load(kX)}},
                                    Grain::kEachEffect, {0, 0});
}

TEST(ModelLitmus, MessagePassing) {
  expect_sequentially_consistent<2>({{store(kX, 1), store(kY, 1)}, {load(kY), load(kX)}},
                                    Grain::kEachEffect, {1, 0});
}

TEST(ModelLitmus, LoadBuffering) {
  expect_sequentially_consistent<2>({{load(kX), store(kY, 1)}, {load(kY), store(kX, 1)}},
                                    Grain::kEachEffect, {1, 1});
}

TEST(ModelLitmus, CoherenceOfReads) {
  expect_sequentially_consistent<2>({{store(kX, 1), store(kX, 2)}, {load(kX), load(kX)}},
                                    Grain::kEachEffect, {2, 1});
}

TEST(ModelLitmus, CoherenceOfReadsWithTwoWriters) {
  expect_sequentially_consistent<3>({{store(kX, 1)}, {load(kX), load(kX)}, {store(kX, 2)}},
                                    Grain::kEachEffect, {3, 3});
}

TEST(ModelLitmus, IndependentReadsOfIndependentWrites) {
  expect_sequentially_consistent<4>(
      {{store(kX, 1)}, {store(kY, 1)}, {load(kX), load(kY)}, {load(kY), load(kX)}},
      Grain::kWholeSteps, {1, 0, 1, 0});
}

}  // namespace
}  // namespace amasia::dsm::protocol
