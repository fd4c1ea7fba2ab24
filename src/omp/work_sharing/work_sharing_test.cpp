// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/work_sharing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "omp/work_sharing/loopback_job.hpp"

namespace amasia::omp {
namespace {

struct Loop {
  loops::Space space;
  loops::ScheduleRequest schedule;
};

std::vector<Loop> random_loops(std::mt19937& random) {
  std::vector<Loop> loops;
  for (int i = 0; i < 12; ++i) {
    const auto kind = static_cast<loops::ScheduleKind>(random() % loops::kScheduleKinds);
    const loops::ScheduleRequest schedule{kind, random() % 6, random() % 2 == 0};
    loops.push_back({{0, 1, random() % (i % 3 == 0 ? 5 : 400)}, schedule});
  }
  return loops;
}

// Whatever a dynamic loop is carried out by, its chunks are not cut.
TEST(WorkSharing, ChunksOfDynamicLoopsStayWhole) {
  for (const auto kind : {loops::ScheduleKind::kHetProbeI, loops::ScheduleKind::kAwf,
                          loops::ScheduleKind::kStatic}) {
    LoopSettings settings;
    settings.schedule = kind;
    LoopbackJob job({2, 3}, settings);
    constexpr std::uint64_t kChunk = 7, kCount = 1000;
    std::vector<std::atomic<int>> runs(kCount);
    for (int region = 0; region < 3; ++region) {
      job.region([&](ThreadFrame& frame) {
        WorkSharing& sharing = *frame.team->node().work_sharing();
        const loops::ScheduleRequest dynamic{loops::ScheduleKind::kDynamic, kChunk};
        sharing.begin(frame, {0, 1, kCount}, dynamic, &runs);
        for (loops::Iterations range; sharing.next(frame, range);) {
          EXPECT_EQ(range.begin % kChunk, 0u);
          EXPECT_TRUE(range.end % kChunk == 0 || range.end == kCount);
          for (auto n = range.begin; n < range.end; ++n) runs[n].fetch_add(1);
        }
      });
    }
    for (const auto& count : runs) ASSERT_EQ(count.load(), 3);
  }
}

// No barrier between the loops: fast threads run ahead, on their node and on others.
TEST(WorkSharing, LoopsInARowGiveEveryIterationOnce) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> threads(1 + random() % 4);
    for (auto& n : threads) n = 1 + random() % 3;
    LoopbackJob job(threads);
    std::array<char, 12> sites{};
    for (int region = 0; region < 8; ++region) {
      const std::vector<Loop> loops = random_loops(random);
      std::vector<std::vector<std::atomic<int>>> runs;
      for (const Loop& loop : loops) runs.emplace_back(loop.space.count);
      job.region([&](ThreadFrame& frame) {
        WorkSharing& sharing = *frame.team->node().work_sharing();
        for (std::size_t i = 0; i < loops.size(); ++i) {
          // A place's loops differ from region to region, but for their place.
          sharing.begin(frame, loops[i].space, loops[i].schedule, i % 4 == 0 ? nullptr : &sites[i]);
          std::uint64_t last = 0;
          for (loops::Iterations range; sharing.next(frame, range);) {
            EXPECT_FALSE(range.empty());
            EXPECT_TRUE(range.begin >= last || !loops[i].schedule.monotonic);
            last = range.end;
            for (auto n = range.begin; n < range.end; ++n) runs[i][n].fetch_add(1);
          }
        }
      });
      for (std::size_t i = 0; i < loops.size(); ++i) {
        for (const auto& count : runs[i]) ASSERT_EQ(count.load(), 1) << "seed " << seed;
      }
    }
  }
}

// In parts: each iteration once, among other loops.
TEST(WorkSharing, StaticLoopsInPartsGiveEveryIterationOnce) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> threads(2 + random() % 3);
    for (auto& n : threads) n = 1 + random() % 3;
    LoopbackJob job(threads);
    char site;
    for (int region = 0; region < 8; ++region) {
      const std::uint64_t count = 1 + random() % 2000;
      std::vector<std::atomic<int>> runs(count), dynamic(count);
      job.region([&](ThreadFrame& frame) {
        WorkSharing& sharing = *frame.team->node().work_sharing();
        sharing.begin_static(frame, {5, 1, count}, &site);
        for (loops::Iterations range; sharing.next(frame, range);) {
          for (auto n = range.begin; n < range.end; ++n) runs[n].fetch_add(1);
        }
        sharing.begin(frame, {0, 1, count}, {loops::ScheduleKind::kAuto, 0}, &site);
        for (loops::Iterations range; sharing.next(frame, range);) {
          for (auto n = range.begin; n < range.end; ++n) dynamic[n].fetch_add(1);
        }
      });
      for (const auto& one : runs) ASSERT_EQ(one.load(), 1) << "seed " << seed;
      for (const auto& one : dynamic) ASSERT_EQ(one.load(), 1) << "seed " << seed;
    }
  }
}

TEST(WorkSharing, OfAStaticLoopInPartsOthersDoWhatANodeHasLeft) {
  LoopbackJob job({1, 1});
  constexpr std::uint64_t kCount = 6400;
  std::array<std::atomic<std::uint64_t>, 2> done{};
  job.region([&](ThreadFrame& frame) {
    WorkSharing& sharing = *frame.team->node().work_sharing();
    sharing.begin_static(frame, {0, 1, kCount}, nullptr);
    for (loops::Iterations range; sharing.next(frame, range);) {
      const auto each = std::chrono::microseconds(frame.team->on_origin() ? 10 : 100);
      std::this_thread::sleep_for(each * range.size());
      done[frame.team->rank()].fetch_add(range.size());
    }
  });
  EXPECT_EQ(done[0] + done[1], kCount);
  EXPECT_GT(done[0].load(), kCount * 3 / 4);
}

// A region that has decided for the origin only, whose threads stay on their nodes: nothing is
// probed, and no history of shared runs brings the others back.
TEST(WorkSharing, WhereTheOriginWorksAloneSoDoItsLoops) {
  LoopbackJob job({2, 1, 1});
  char site;
  std::array<std::atomic<std::uint64_t>, 3> done{};
  const auto run = [&] {
    for (auto& one : done) one = 0;
    job.region([&](ThreadFrame& frame) {
      WorkSharing& sharing = *frame.team->node().work_sharing();
      for (const auto kind : {loops::ScheduleKind::kHetProbe, loops::ScheduleKind::kHetProbeI,
                              loops::ScheduleKind::kDynamic, loops::ScheduleKind::kAwf}) {
        sharing.begin(frame, {0, 1, 500}, {kind, 0}, &site);
        for (loops::Iterations range; sharing.next(frame, range);) {
          done[frame.team->rank()].fetch_add(range.size());
        }
      }
    });
    return done[0] + done[1] + done[2];
  };
  EXPECT_EQ(run(), 4 * 500u);
  job.set_speeds({loops::kEvenSpeed, 0, 0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(), 4 * 500u);
    EXPECT_EQ(done[0], 4 * 500u);
  }
  // The same where another node does it all: the origin still deals its iterations out.
  job.set_speeds({0, loops::kEvenSpeed, 0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(), 4 * 500u);
    EXPECT_EQ(done[1], 4 * 500u);
  }
}

// With known speeds the fast node is told that there is no more long before the slow one asks: that
// takes longer each time than it has told.
TEST(WorkSharing, WhatIsToldAfterTheEndCountsInTheNextRun) {
  using std::chrono::microseconds;
  LoopbackJob job({1, 1});
  const char site = 0;
  constexpr std::uint32_t kRuns = 8;
  for (std::uint32_t run = 0; run < kRuns; ++run) {
    const std::array<microseconds, 2> iteration{microseconds(5), microseconds(10 + 2 * run)};
    job.region([&](ThreadFrame& frame) {
      WorkSharing& sharing = *frame.team->node().work_sharing();
      sharing.begin(frame, {0, 1, 1000}, {loops::ScheduleKind::kHetProbe, 0}, {&site, &site});
      for (loops::Iterations range; sharing.next(frame, range);) {
        std::this_thread::sleep_for(range.size() * iteration[frame.team->rank()]);
      }
    });
  }
  const std::optional<LoopOutcome> outcome = job.sharing(0).outcome_of(nullptr, &site);
  ASSERT_TRUE(outcome.has_value());
  ASSERT_EQ(outcome->last.parts.size(), 2u);
  EXPECT_GE(outcome->last.parts[1].probes, kRuns / 2) << "of " << kRuns;
}

// Node 1 stops in a loop after some chunks and, once the origin has left it, what it has left goes
// there; not where a schedule probes, as the origin would wait for what node 1 has to tell.
TEST(WorkSharing, WhatANodeHasLeftOfALoopGoesToTheOrigin) {
  constexpr std::uint64_t kCount = 400;
  for (std::size_t kind = 0; kind < loops::kScheduleKinds; ++kind) {
    const loops::ScheduleRequest schedule{static_cast<loops::ScheduleKind>(kind), 3};
    if (!loops::schedule_of(schedule.kind).pooled()) continue;
    if (loops::schedule_of(schedule.kind).probes()) continue;
    LoopbackJob job({1, 1});
    const char site = 0;
    int went = 0;
    for (int stops_after = 1; stops_after < 20; ++stops_after) {
      std::vector<std::atomic<int>> runs(kCount);
      std::barrier both(2);
      ThreadLoop left;
      job.region([&](ThreadFrame& frame) {
        WorkSharing& sharing = *frame.team->node().work_sharing();
        const auto take = [&](int most) {
          loops::Iterations range;
          for (int taken = 0; taken < most && sharing.next(frame, range); ++taken) {
            for (auto n = range.begin; n < range.end; ++n) runs[n].fetch_add(1);
          }
        };
        constexpr int kAll = 1 << 20;
        sharing.begin(frame, {0, 1, kCount}, schedule, {&site, &site});
        const std::uint32_t region = frame.team->region();
        const std::uint64_t met = frame.loops_met;
        if (frame.team->rank() == 1) {
          take(stops_after);
          left = frame.loop;
          both.arrive_and_wait();  // it stands
          both.arrive_and_wait();  // what it has left is gone, or it is to go on
          return;
        }
        take(kAll);
        both.arrive_and_wait();
        WorkSharing& other = job.sharing(1);
        if (left.slot != nullptr) {
          EXPECT_EQ(sharing.left_at_home(region, met), 0u);
          while (!other.may_depart(region, met)) std::this_thread::yield();  // it has asked
          const LoopRest rest = other.depart(region, met);
          EXPECT_EQ(rest.threads, 1u);
          frame.loop = std::exchange(left, {});
          frame.loop.in_hand = 0;
          frame.loop.slot = sharing.adopt(region, rest);
          sharing.forget(region, met);
          take(kAll);
          ++went;
        }
        both.arrive_and_wait();
      });
      for (const auto& count : runs) ASSERT_EQ(count.load(), 1) << kind << ' ' << stops_after;
    }
    EXPECT_GE(went, 1) << kind;
  }
}

TEST(WorkSharing, NodesThatNoLoopUsesAreIdle) {
  LoopAdvice advice;
  EXPECT_FALSE(advice.is_idle(1)) << "no loop has said anything";
  advice.note(0, true);
  advice.note(1, false);
  advice.note(2, false);
  advice.note(2, true);
  EXPECT_FALSE(advice.is_idle(0));
  EXPECT_TRUE(advice.is_idle(1));
  EXPECT_FALSE(advice.is_idle(2));
}

TEST(WorkSharing, ShortLoopsNeedNoMessage) {
  LoopbackJob job({1, 1});
  job.region([](ThreadFrame& frame) {
    WorkSharing& sharing = *frame.team->node().work_sharing();
    sharing.begin(frame, {0, 1, 2}, {loops::ScheduleKind::kDynamic, 1}, nullptr);
    int taken = 0;
    for (loops::Iterations range; sharing.next(frame, range);) ++taken;
    EXPECT_EQ(taken, 1);
  });
  EXPECT_EQ(job.sharing(0).refills() + job.sharing(1).refills(), 0u);
}

}  // namespace
}  // namespace amasia::omp
