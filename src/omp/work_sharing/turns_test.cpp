// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/turns.hpp"

#include <gtest/gtest.h>

#include <random>

#include "omp/work_sharing/loopback_job.hpp"

namespace amasia::omp {
namespace {

struct Loop {
  loops::Space space;
  loops::ScheduleRequest schedule;
  std::uint64_t every = 1;  // which iterations have an ordered part
};

std::vector<Loop> random_loops(std::mt19937& random) {
  std::vector<Loop> loops;
  for (int i = 0; i < 8; ++i) {
    const auto kind = static_cast<loops::ScheduleKind>(random() % loops::kScheduleKinds);
    loops.push_back({{0, 1, random() % (i % 3 == 0 ? 4 : 60)}, {kind, random() % 4},
                     1 + random() % 3});
  }
  return loops;
}

// No barrier between the loops: fast threads run ahead, and turns of several loops are under way.
TEST(Turns, OrderedPartsOfEveryIterationComeInOrder) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> threads(1 + random() % 4);
    for (auto& n : threads) n = 1 + random() % 3;
    LoopbackJob job(threads);
    for (int region = 0; region < 3; ++region) {
      const std::vector<Loop> loops = random_loops(random);
      std::vector<std::vector<std::uint64_t>> order(loops.size());
      std::vector<std::atomic<std::uint64_t>> executed(loops.size());
      job.region([&](ThreadFrame& frame) {
        Turns& turns = *frame.team->node().turns();
        for (std::size_t i = 0; i < loops.size(); ++i) {
          turns.begin(frame, loops[i].space, loops[i].schedule, nullptr);
          for (loops::Iterations range; turns.next(frame, range);) {
            for (auto n = range.begin; n < range.end; ++n) {
              executed[i].fetch_add(1);
              if (n % loops[i].every != 0) continue;
              turns.enter(frame);
              order[i].push_back(n);  // a race, unless the turns exclude each other
              turns.leave(frame);
            }
          }
        }
      });
      for (std::size_t i = 0; i < loops.size(); ++i) {
        EXPECT_EQ(executed[i].load(), loops[i].space.count);
        std::vector<std::uint64_t> expected;
        for (std::uint64_t n = 0; n < loops[i].space.count; n += loops[i].every) {
          expected.push_back(n);
        }
        ASSERT_EQ(order[i], expected) << "seed " << seed << ", loop " << i;
      }
    }
  }
}

}  // namespace
}  // namespace amasia::omp
