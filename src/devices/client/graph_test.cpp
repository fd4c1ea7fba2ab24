// SPDX-License-Identifier: Apache-2.0
#include "devices/client/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace amasia::devices {
namespace {

using Needs = std::map<std::uint64_t, std::set<std::uint64_t>>;

// Those that waited or were waited for.
std::set<std::uint64_t> related_in(const Needs& needs) {
  std::set<std::uint64_t> related;
  for (const auto& [task, others] : needs) {
    if (!others.empty()) related.insert(task);
    related.insert(others.begin(), others.end());
  }
  return related;
}

// A model that looks at everything anew after each step.
TEST(TaskGraph, AgreesWithAModel) {
  std::mt19937 random(6);
  std::size_t most = 0;  // dependencies that a task waited for
  for (int round = 0; round < 200; ++round) {
    TaskGraph graph;
    enum class State { kWaits, kReady, kSucceeded, kFailed };
    std::map<std::uint64_t, State> states;
    Needs needs;
    std::uint64_t last = 0;
    for (int step = 0; step < 150; ++step) {
      std::vector<std::uint64_t> ready;
      for (const auto& [task, state] : states) {
        if (state == State::kReady) ready.push_back(task);
      }
      if (ready.empty() || random() % 2 == 0) {
        // A client does not add what depends on a task that failed, which fails at once, and leaves
        // out what has ended.
        std::vector<std::uint64_t> dependencies;
        for (auto left = random() % 100; left > 0 && last > 0; --left) {
          const std::uint64_t other = 1 + random() % last;
          const bool has_ended =
              states[other] == State::kFailed || states[other] == State::kSucceeded;
          if (!has_ended) dependencies.push_back(other);
        }
        const std::uint64_t task = ++last;
        needs[task].insert(dependencies.begin(), dependencies.end());
        most = std::max(most, needs[task].size());
        const bool is_ready = graph.add(task, dependencies);
        ASSERT_EQ(is_ready, needs[task].empty());
        states[task] = is_ready ? State::kReady : State::kWaits;
        continue;
      }
      const std::uint64_t task = ready[random() % ready.size()];
      const bool succeeds = random() % 8 != 0;
      states[task] = succeeds ? State::kSucceeded : State::kFailed;
      std::set<std::uint64_t> now_ready, now_failed;
      for (bool changed = true; changed;) {
        changed = false;
        for (auto& [one, state] : states) {
          if (state != State::kWaits) continue;
          bool fails = false, waits = false;
          for (const auto other : needs[one]) {
            fails |= states[other] == State::kFailed;
            waits |= states[other] != State::kSucceeded;
          }
          if (fails) now_failed.insert(one);
          if (!fails && !waits) now_ready.insert(one);
          if (fails || !waits) state = fails ? State::kFailed : State::kReady;
          changed |= fails || !waits;
        }
      }
      const auto consequences = graph.end(task, succeeds);
      EXPECT_EQ(std::set(consequences.ready.begin(), consequences.ready.end()), now_ready);
      std::set<std::uint64_t> failed;
      for (const auto& [one, because] : consequences.failed) {
        EXPECT_TRUE(because == task || failed.contains(because));
        EXPECT_TRUE(needs[one].contains(because));
        EXPECT_TRUE(failed.insert(one).second);
      }
      EXPECT_EQ(failed, now_failed);
    }
    const auto related = related_in(needs);  // it holds those that have not ended, and no others
    EXPECT_EQ(graph.size(), std::count_if(related.begin(), related.end(), [&](auto task) {
                return states[task] == State::kWaits || states[task] == State::kReady;
              }));
  }
  EXPECT_GT(most, 5U);
}

}  // namespace
}  // namespace amasia::devices
