// SPDX-License-Identifier: Apache-2.0
// How much of a shared region each node does, as its times vary.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "loops/cpu_limit.hpp"
#include "loops/shared_halves.hpp"

namespace amasia::loops {
namespace {

constexpr double kMs = base::kMillisecond;

// A node that stands still in some executions, as under a quota of CPU time.
TEST(SharingBalance, WhatIsTheRuleIsNoException) {
  SharingModel model(std::vector<double>{1, 0.5});
  for (int run = 0; run < 100; ++run) {
    ASSERT_TRUE(model.shares() || run < 10) << run;
    if (!model.shares()) {
      model.observe_alone(8'000'000, 0);
      continue;
    }
    const double part = model.powers()[1] / (model.powers()[0] + model.powers()[1]);
    const auto own = static_cast<Nanos>(8e6 * (1 - part));
    // A core as fast as the origin's that is there for a third of the time.
    const auto other = static_cast<Nanos>(8e6 * part * (run % 3 == 0 ? 7 : 1));
    const std::vector<RegionPart> parts = {{.threads = 1, .work = 1 - part, .busy = own},
                                           {.threads = 1, .work = part, .busy = other}};
    model.observe_shared(parts, std::max(own, other) + 10'000, true);
  }
  EXPECT_NEAR(model.powers()[1] / model.powers()[0], 0.33, 0.1);
}

// A core that may be used for 1 ms in every 3: what is done before the quota is takes little, the
// rest waits for the next period.
class QuotaCore {
 public:
  static constexpr double kRun = 1 * kMs, kPeriod = 3 * kMs;
  // How long `work` takes that begins now.
  double compute(double work) {
    const double begin = now_;
    for (;;) {
      const double run = std::min(work, kRun - used_);
      now_ += run;
      used_ += run;
      work -= run;
      if (work <= 0) return now_ - begin;
      wait_until(period_end_);
    }
  }
  void wait_until(double when) {
    now_ = std::max(now_, when);
    while (now_ >= period_end_) {
      period_end_ += kPeriod;
      used_ = 0;
    }
  }
  double now() const { return now_; }

 private:
  double now_ = 0, period_end_ = kPeriod, used_ = 0;
};

constexpr double kAlone = 4 * kMs;

// Part of the other node, the times of both, the gap before.
using Told = std::function<void(double, double, double, double)>;

// Average time of a region that takes kAlone alone, shared with a QuotaCore by the parts that are
// asked for before each execution; each is told of.
// `longest_gap` lies between executions at most.
double average_with_quota(int seed, double longest_gap, const std::function<double()>& part,
                          const Told& tell) {
  constexpr int kRuns = 600, kLate = 100;
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::uniform_real_distribution<> factor(0.95, 1.1), gap(longest_gap / 3, longest_gap);
  QuotaCore core;
  double sum = 0, rest = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double begin = core.now(), other_part = part();
    const double own = kAlone * (1 - other_part) * factor(random);
    const double other = core.compute(kAlone * other_part * factor(random));
    const double elapsed = std::max(own, other);
    if (run >= kLate) sum += elapsed / (kRuns - kLate);
    tell(other_part, own, other, rest);
    rest = gap(random);
    core.wait_until(begin + elapsed + rest);
  }
  return sum;
}

// Average time with what a model finds, by that with the best shares. The model is told of the time
// that the other node takes as it is, or with its limit.
double distance_to_best(double longest_gap, const CpuLimit& limit) {
  double best = 1e300, found = 0;
  for (double part = 0; part < 0.7; part += 0.01) {
    const auto always = [part] { return part; };
    best = std::min(best, average_with_quota(1, longest_gap, always, [](auto...) {}));
  }
  constexpr int kSeeds = 20;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SharingModel model(std::vector<double>{1, 0.33});
    const auto part = [&model] {
      return model.shares() ? model.powers()[1] / (model.powers()[0] + model.powers()[1]) : 0;
    };
    const auto tell = [&](double work, double own, double other, double rest) {
      if (!model.shares()) return model.observe_alone(static_cast<Nanos>(own), 0);
      const Nanos sustained = sustained_time(limit, static_cast<Nanos>(kAlone * work),
                                             static_cast<Nanos>(rest));
      const std::array<RegionPart, 2> parts{
          RegionPart{.threads = 1, .work = 1 - work, .busy = static_cast<Nanos>(own)},
          RegionPart{.threads = 1, .work = work,
                     .busy = std::max(static_cast<Nanos>(other), sustained)}};
      model.observe_shared(parts, static_cast<Nanos>(std::max(own, other)) + 50'000, true);
    };
    found += average_with_quota(seed, longest_gap, part, tell) / kSeeds;
  }
  return found / best;
}

TEST(SharingBalance, SharesStayWhereAQuotaMakesTimesJump) {
  const double distance = distance_to_best(0.15 * kMs, {});
  std::printf("under a quota: %.3f of the time with the best shares\n", distance);
  EXPECT_LT(distance, 1.06);
}

TEST(SharingBalance, AQuotaThatIsKnownIsReckonedWith) {
  const CpuLimit limit{.cores = QuotaCore::kRun / QuotaCore::kPeriod,
                       .period = static_cast<Nanos>(QuotaCore::kPeriod)};
  for (const double gap : {0.03, 0.15, 0.5, 1.0, 2.0, 4.0}) {
    const double known = distance_to_best(gap * kMs, limit);
    const double unknown = distance_to_best(gap * kMs, {});
    std::printf("under a known quota, gaps up to %.2f ms: %.3f of the best (unknown %.3f)\n", gap,
                known, unknown);
    EXPECT_LT(known, 1.025);
  }
}

// A first sweep over two arrays that take turns: the second execution brings data, too, and to node
// 1 more of them.
TEST(SharingBalance, SharesStayWhileDataStillCome) {
  const std::array<double, 2> powers{1, 1};
  SharingModel model(powers);
  observe_halves(model, 12'000'000, 20'000'000, 44'000'000);
  observe_halves(model, 6'000'000, 2'000'000, 13'000'000);
  EXPECT_EQ(model.powers()[0], model.powers()[1]);
  for (int i = 0; i < 20; ++i) observe_halves(model, 3'000'000, 200'000, 200'000);
  EXPECT_EQ(model.phase(), SharingModel::Phase::kShared);
  EXPECT_EQ(model.powers()[0], model.powers()[1]);
}

// The same while each execution waits for less than the one before, and node 0 for nothing.
TEST(SharingBalance, SharesStayWhileNodesWaitForLessEachTime) {
  const std::array<double, 2> powers{1, 1};
  SharingModel model(powers);
  Nanos stall = 9'000'000;
  for (int i = 0; i < 7; ++i, stall = stall * 7 / 10) observe_halves(model, 6'000'000, 0, stall);
  for (int i = 0; i < 20; ++i) observe_halves(model, 6'000'000, 0, 0);
  EXPECT_EQ(model.phase(), SharingModel::Phase::kShared);
  EXPECT_EQ(model.powers()[0], model.powers()[1]);
}

// What a fault takes, in the first execution, against what a seam that moves puts out of balance.
TEST(SharingBalance, SeamsAreCoarseWhereFaultsAreDear) {
  for (const Nanos stall : {10'000, 100'000, 1'000'000}) {
    SharingModel model(std::vector<double>{1, 1});
    EXPECT_EQ(model.seam(), Seam::kCoarse);
    observe_halves(model, 4'000'000, stall, stall);
    EXPECT_EQ(model.seam(), stall > 500'000 ? Seam::kCoarse : Seam::kFine) << stall;
    EXPECT_EQ(model.version(), stall > 500'000 ? 1u : 2u);
  }
}

// A node takes a fifth longer than the other one. What its data have cost when they came is what it
// may cost to move a part of them.
TEST(SharingBalance, TheFirstMovePaysForItself) {
  for (const Nanos came : {1'000'000, 30'000'000}) {
    const std::array<double, 2> powers{1, 1};
    SharingModel model(powers);
    int runs = 0;
    for (; model.powers()[0] == model.powers()[1] && runs < 300; ++runs) {
      const std::array<RegionPart, 2> parts{
          RegionPart{.threads = 1, .work = 0.5, .busy = 3'000'000},
          RegionPart{.threads = 1, .work = 0.5, .busy = 3'600'000, .stall = runs == 0 ? came : 0}};
      model.observe_shared(parts, 3'610'000 + parts[1].stall, true);
      ASSERT_TRUE(model.shares());
    }
    // 0.3 ms are to gain each time.
    EXPECT_GE(runs, came < 2'000'000 ? 3 : 60);
    EXPECT_LE(runs, came < 2'000'000 ? 10 : 200);
    EXPECT_LT(model.powers()[1], model.powers()[0]);
  }
}

// Nodes that share cores take unlike times, and data take five executions to follow a move.
TEST(SharingBalance, SharesMoveSeldomWhereThatIsDear) {
  const std::vector<double> speeds{1, 0.5, 0.33, 0.25};
  constexpr int kRuns = 240, kSeeds = 20;
  double sum = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::uniform_real_distribution<> factor(0.7, 1.4);
    SharingModel model(speeds, SharingModel::Rule::kAlways);
    std::uint32_t version = model.version();
    double stall = 9 * kMs;
    for (int run = 0; run < kRuns; ++run, stall *= 0.7) {
      if (std::exchange(version, model.version()) != model.version()) stall = 8 * kMs;
      const std::span<const double> shares = model.powers();
      const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
      std::vector<RegionPart> parts(speeds.size());
      Nanos elapsed = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const double work = shares[i] / all;
        parts[i] = {.threads = 1,
                    .work = work,
                    .busy = static_cast<Nanos>(kAlone * work / speeds[i] * factor(random)),
                    .stall = static_cast<Nanos>(i > 0 ? stall : 0)};
        elapsed = std::max(elapsed, parts[i].busy + parts[i].stall);
      }
      model.observe_shared(parts, elapsed, true);
      sum += static_cast<double>(elapsed) / (kRuns * kSeeds);
    }
  }
  std::printf("where shares are dear to move: %.2f ms\n", sum / kMs);
  EXPECT_LT(sum, 3 * kMs);
}

TEST(SharingBalance, OneDisturbedExecutionMovesNothing) {
  const std::array<double, 2> powers{1, 1};
  for (int before = 3; before < 40; ++before) {
    SharingModel model(powers);
    for (int i = 0; i < before; ++i) observe_halves(model, 4'000'000, 500'000, 500'000);
    const std::uint32_t version = model.version();
    observe_halves(model, 4'000'000, 500'000, 40'000'000);
    for (int i = 0; i < 40; ++i) observe_halves(model, 4'000'000, 500'000, 500'000);
    EXPECT_EQ(model.version(), version) << "after " << before;
  }
}

// Another program takes a core for some milliseconds.
TEST(SharingBalance, ThreeDisturbedExecutionsMoveNothing) {
  const std::array<double, 2> powers{1, 1};
  for (int before = 6; before < 60; ++before) {
    SharingModel model(powers);
    for (int i = 0; i < before; ++i) observe_halves(model, 2'000'000, 0, 0);
    for (int i = 0; i < 3; ++i) observe_halves(model, 2'000'000, 0, 2'500'000);
    for (int i = 0; i < 40; ++i) observe_halves(model, 2'000'000, 0, 0);
    EXPECT_EQ(model.powers()[0], model.powers()[1]) << "after " << before;
  }
}

// Another program takes half of a core, and stays.
TEST(SharingBalance, AChangeThatLastsMovesTheShares) {
  const std::array<double, 2> powers{1, 1};
  SharingModel model(powers);
  for (int i = 0; i < 12; ++i) observe_halves(model, 4'000'000, 500'000, 500'000);
  const std::uint32_t version = model.version();
  for (int i = 0; i < 8 && model.version() == version; ++i) {
    const std::array<RegionPart, 2> parts{
        RegionPart{.threads = 1, .work = 0.5, .busy = 4'000'000, .stall = 500'000, .faults = 1},
        RegionPart{.threads = 1, .work = 0.5, .busy = 8'000'000, .stall = 500'000, .faults = 1}};
    model.observe_shared(parts, 8'600'000, true);
    ASSERT_TRUE(model.shares());
  }
  EXPECT_NE(model.version(), version);
  EXPECT_LT(model.powers()[1], model.powers()[0]);
}

// A region that takes kAlone alone, on nodes of these speeds, of which all but the origin begin
// `lag` late by half, and whose ends the origin hears of as much later. Noise of 2 %.
class FarNodes {
 public:
  FarNodes(std::vector<double> speeds, double lag, unsigned seed)
      : speeds_(std::move(speeds)), lag_(lag), random_(seed) {}

  // Shares by the model's powers, which is told of it; returns what it took.
  double run(SharingModel& model) {
    std::uniform_real_distribution<> factor(0.98, 1.02);
    const std::span<const double> powers = model.powers();
    const double sum = std::accumulate(powers.begin(), powers.end(), 0.0);
    std::vector<RegionPart> parts(speeds_.size());
    double elapsed = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double work = powers[i] / sum, time = kAlone * work / speeds_[i] * factor(random_);
      parts[i] = {.threads = 1, .work = work, .busy = static_cast<Nanos>(time)};
      elapsed = std::max(elapsed, time + (i > 0 ? lag_ : 0));
    }
    parts[0].joining = static_cast<Nanos>(elapsed) - parts[0].busy;
    model.observe_shared(parts, static_cast<Nanos>(elapsed), true);
    return elapsed;
  }
  // All end at once.
  double best() const {
    const double sum = std::accumulate(speeds_.begin(), speeds_.end(), 0.0);
    return (kAlone + (sum - speeds_[0]) * lag_) / sum;
  }

 private:
  std::vector<double> speeds_;
  double lag_;
  std::mt19937_64 random_;
};

TEST(SharingBalance, WhoBeginsLateHasLess) {
  for (const std::vector<double>& speeds :
       {std::vector<double>{1, 1}, {1, 0.33}, {0.5, 1}, {1, 0.5, 0.33, 0.25}}) {
    for (const double lag : {0.02, 0.1, 0.3, 0.6}) {
      double late = 0, last_move = 0;
      FarNodes nodes(speeds, lag * kMs, 7);
      SharingModel model(speeds, SharingModel::Rule::kAlways);
      constexpr int kRuns = 300, kLate = 200;
      for (int run = 0; run < kRuns; ++run) {
        const std::uint32_t version = model.version();
        const double took = nodes.run(model);
        if (run >= kLate) late += took / (kRuns - kLate);
        if (model.version() != version) last_move = run;
      }
      std::printf("%zu nodes, %.2f ms late: %.3f of the best, last move after %g\n", speeds.size(),
                  lag, late / nodes.best(), last_move);
      EXPECT_LT(late, 1.04 * nodes.best()) << speeds.size() << " nodes, lag " << lag;
    }
  }
}

// As known beforehand, so that none of its data follow a share that moves.
TEST(SharingBalance, WhoIsFarHasLessFromTheSecondExecutionOn) {
  for (const std::vector<double>& speeds :
       {std::vector<double>{1, 1}, {1, 0.33}, {1, 0.5, 0.33, 0.25}}) {
    for (const double lag : {0.0, 0.005, 0.1, 0.3}) {
      FarNodes nodes(speeds, lag * kMs, 7);
      SharingModel model(speeds);
      std::vector<double> round_trips(speeds.size(), lag * kMs);
      round_trips[0] = 0;
      model.set_round_trips(round_trips);
      nodes.run(model);
      nodes.run(model);
      const std::vector<double> second(model.powers().begin(), model.powers().end());
      for (int run = 0; run < 20; ++run) {
        EXPECT_LT(nodes.run(model), 1.06 * nodes.best())
            << speeds.size() << " nodes, lag " << lag << ", run " << run;
      }
      const double sum = std::accumulate(second.begin(), second.end(), 0.0);
      for (std::size_t i = 0; i < second.size(); ++i) {
        EXPECT_NEAR(model.powers()[i] / sum, second[i] / sum, 0.02)
            << speeds.size() << " nodes, lag " << lag;
      }
    }
  }
}

// A link that gets quick: the others get their part back.
TEST(SharingBalance, ALagIsForgotten) {
  const std::vector<double> speeds{1, 1};
  SharingModel model(speeds, SharingModel::Rule::kAlways);
  FarNodes slow(speeds, 0.5 * kMs, 3), quick(speeds, 0, 3);
  for (int run = 0; run < 100; ++run) slow.run(model);
  EXPECT_LT(model.powers()[1], 0.85 * model.powers()[0]);
  for (int run = 0; run < 1000; ++run) quick.run(model);
  EXPECT_GT(model.powers()[1], 0.94 * model.powers()[0]);
}

// Two regions that use the same data, in turns: what their shares differ by is fetched each time.
struct InTurns {
  // What an iteration of each costs on the second node, relative to one on the first.
  std::array<double, 2> cost;
  std::array<SharingModel, 2> models{SharingModel(std::vector<double>{1, 1}),
                                     SharingModel(std::vector<double>{1, 1})};
  double last_part = 0.5, cycle = 0;

  double part_of(std::size_t region) const {
    const SharingModel& model = models[region];
    return model.shares() ? model.powers()[1] / (model.powers()[0] + model.powers()[1]) : 0;
  }
  void run(std::size_t region, std::mt19937_64& random, double& others) {
    constexpr double kAll = 4 * kMs, kAllData = 40 * kMs;
    std::uniform_real_distribution<> factor(0.8, 1.25);
    SharingModel& model = models[region];
    const double part = part_of(region), fetched = std::abs(part - last_part) * kAllData;
    last_part = part;
    const double own = kAll * (1 - part) * factor(random);
    const double other = kAll * part * cost[region] * factor(random);
    const auto stall = static_cast<Nanos>(fetched);
    const auto elapsed = static_cast<Nanos>(std::max(own, other) + fetched) + 10'000;
    const double before = std::exchange(others, static_cast<double>(elapsed));
    cycle = before + static_cast<double>(elapsed);
    if (!model.shares()) return model.observe_alone(elapsed, stall);
    const std::vector<RegionPart> parts = {
        {.threads = 1, .work = 1 - part, .busy = static_cast<Nanos>(own), .stall = stall},
        {.threads = 1, .work = part, .busy = static_cast<Nanos>(other), .stall = stall}};
    model.note_others(static_cast<Nanos>(before));
    model.observe_shared(parts, elapsed, true);
  }
};

TEST(SharingBalance, RegionsThatUseTheSameDataStayTogether) {
  constexpr int kRuns = 200, kSeeds = 20;
  double sum = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    InTurns regions{{0.9, 1.1}};
    double others = 0;
    for (int run = 0; run < kRuns; ++run) {
      for (std::size_t region = 0; region < 2; ++region) regions.run(region, random, others);
      sum += regions.cycle / (kRuns * kSeeds);
    }
  }
  // 2 ms and a little each, the longer of two that vary.
  std::printf("two regions of 4 ms on two nodes: %.2f ms\n", sum / kMs);
  EXPECT_LT(sum, 4.9 * kMs);
}

}  // namespace
}  // namespace amasia::loops
