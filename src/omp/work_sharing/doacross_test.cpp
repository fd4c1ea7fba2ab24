// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/doacross.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "omp/work_sharing/loopback_job.hpp"

namespace amasia::omp {
namespace {

// A row of loops over grids without barriers: each iteration waits for its neighbours above and to
// the left, and finds that they have been executed.
TEST(Doacross, IterationsComeAfterThoseTheyWaitFor) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> threads(1 + random() % 4);
    for (auto& n : threads) n = 1 + random() % 3;
    LoopbackJob job(threads);
    for (int region = 0; region < 3; ++region) {
      struct Grid {
        std::int64_t rows, columns;
        loops::ScheduleRequest schedule;
        std::vector<std::uint32_t> executed;  // plain: ordered by the waits alone
      };
      std::vector<Grid> grids(6);
      for (Grid& grid : grids) {
        grid.rows = 1 + random() % 12;
        grid.columns = 1 + random() % 6;
        grid.schedule = {static_cast<loops::ScheduleKind>(random() % loops::kScheduleKinds),
                         random() % 3};
        grid.executed.resize(static_cast<std::size_t>(grid.rows * grid.columns));
      }
      std::atomic<int> early{0};
      job.region([&](ThreadFrame& frame) {
        Node& node = frame.team->node();
        Doacross& doacross = *node.doacross();
        for (Grid& grid : grids) {
          const std::vector<loops::Space> nest = {
              loops::space_through<std::int64_t>(grid.rows - 1, 0, -1),
              loops::space_through<std::int64_t>(0, 2 * (grid.columns - 1), 2)};
          const auto cell = [&grid](std::int64_t i, std::int64_t j) -> std::uint32_t& {
            return grid.executed[static_cast<std::size_t>(i * grid.columns + j / 2)];
          };
          doacross.begin(frame, nest);
          node.work_sharing()->begin(frame, nest[0], loops::in_turn(grid.schedule), nullptr);
          for (loops::Iterations range; node.work_sharing()->next(frame, range);) {
            for (auto n = range.begin; n < range.end; ++n) {
              const std::int64_t i = grid.rows - 1 - static_cast<std::int64_t>(n);
              for (std::int64_t j = 0; j < 2 * grid.columns; j += 2) {
                doacross.wait(frame, std::vector<std::int64_t>{i + 1, j});
                doacross.wait(frame, std::vector<std::int64_t>{i, j - 2});
                if (i + 1 < grid.rows && cell(i + 1, j) == 0) ++early;
                cell(i, j) = 1;
                doacross.post(frame, std::vector<std::int64_t>{i, j});
              }
            }
          }
          doacross.end(frame);
        }
      });
      EXPECT_EQ(early.load(), 0) << "seed " << seed;
      for (const Grid& grid : grids) {
        for (const std::uint32_t times : grid.executed) ASSERT_EQ(times, 1u);
      }
    }
  }
}

// Brief iterations, of which others are told many together; the first thread then waits by other
// means for what the last one does with the last of them, while it still has some to tell.
TEST(Doacross, AThreadThatWaitsForOneThatWaitsForIt) {
  LoopbackJob job({1, 1, 1});
  constexpr std::int64_t kIterations = 1000;
  std::atomic<bool> last_is_done{false};
  std::atomic<int> early{0};
  std::vector<std::uint32_t> executed(kIterations);  // plain: ordered by the waits alone
  job.region([&](ThreadFrame& frame) {
    Doacross& doacross = *frame.team->node().doacross();
    const loops::Space row = loops::space_through<std::int64_t>(0, kIterations - 1, 1);
    doacross.begin(frame, {&row, 1});
    if (frame.global_id == 0) {
      for (std::int64_t i = 0; i < kIterations; ++i) {
        executed[static_cast<std::size_t>(i)] = 1;
        doacross.post(frame, std::vector<std::int64_t>{i});
      }
      while (!last_is_done) std::this_thread::yield();
    } else {
      for (std::int64_t i = frame.global_id; i < kIterations; i += frame.global_id) {
        doacross.wait(frame, std::vector<std::int64_t>{i});
        if (executed[static_cast<std::size_t>(i)] == 0) ++early;
      }
      if (frame.global_id == 2) last_is_done = true;
    }
    doacross.end(frame);
  });
  EXPECT_EQ(early, 0);
}

}  // namespace
}  // namespace amasia::omp
