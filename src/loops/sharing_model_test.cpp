// SPDX-License-Identifier: Apache-2.0
#include "loops/sharing_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace amasia::loops {
namespace {

using Phase = SharingModel::Phase;

// A region on unlike nodes, in virtual time. Data is where it was used last: sharing after having
// been alone, and the other way round, moves it.
struct Region {
  std::vector<double> speeds;  // work per ns; node 0 is the origin
  double cold_stall = 0;       // for a node's data to come, once
  double settled_stall = 0;    // in each execution, for all of the work on one node
  double rest = 0;             // fork and join, for each further node
  double noise = 0;
  std::mt19937_64 random{1};

  bool data_shared = false;

  double noisy(double value) {
    return value * (1 + noise * std::uniform_real_distribution<>(-1, 1)(random));
  }
  double alone() const { return 1 / speeds[0]; }
  double shared(std::span<const double> powers) const {
    double sum = 0, longest = 0, nodes = 0;
    for (const double power : powers) sum += power;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      if (powers[i] <= 0) continue;
      longest = std::max(longest, powers[i] / sum * (1 / speeds[i] + settled_stall));
      nodes += 1;
    }
    return longest + rest * (nodes - 1);
  }
  // The best division: all times equal.
  double ideal() const {
    std::vector<double> rates;
    for (const double speed : speeds) rates.push_back(1 / (1 / speed + settled_stall));
    return std::min(alone(), shared(rates));
  }
  double run(SharingModel& model) {
    double elapsed = 0;
    if (!model.shares()) {
      elapsed = noisy(alone()) + (data_shared ? cold_stall : 0);
      data_shared = false;
      model.observe_alone(static_cast<Nanos>(elapsed));
      return elapsed;
    }
    const std::span<const double> powers = model.powers();
    double sum = 0, nodes = 0;
    for (const double power : powers) sum += power;
    std::vector<RegionPart> samples(speeds.size());
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      if (powers[i] <= 0) continue;
      nodes += 1;
      RegionPart& sample = samples[i];
      sample.threads = 1;
      sample.work = powers[i] / sum;
      sample.busy = static_cast<Nanos>(noisy(sample.work / speeds[i]));
      sample.stall = static_cast<Nanos>(sample.work * settled_stall);
      if (!data_shared && i > 0) sample.stall += static_cast<Nanos>(cold_stall);
      elapsed = std::max(elapsed, static_cast<double>(sample.busy + sample.stall));
    }
    elapsed += rest * (nodes - 1);
    data_shared = true;
    model.observe_shared(samples, static_cast<Nanos>(elapsed), true);
    return elapsed;
  }
};

SharingModel model_of(const Region& region) {
  return SharingModel(std::vector<double>(region.speeds.size(), 1.0));
}

constexpr double kMs = base::kMillisecond;

TEST(SharingModel, SharesWhatPaysInBalance) {
  Region region{{1 / kMs, 0.33 / kMs}, 0.2 * kMs, 0, 0.01 * kMs};
  SharingModel model = model_of(region);
  for (int i = 0; i < 5; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kShared);
  EXPECT_NEAR(model.powers()[0] / model.powers()[1], 3.0, 0.1);
  EXPECT_LT(region.run(model), 1.03 * region.ideal());
}

TEST(SharingModel, LeavesWhatDoesNotPayAfterTwoExecutions) {
  Region region{{1 / kMs, 1 / kMs}, 0.5 * kMs, 3 * kMs, 0.01 * kMs};
  SharingModel model = model_of(region);
  for (int i = 0; i < 2; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kAlone);
}

TEST(SharingModel, DoesNotRepeatWhatIsBeyondHope) {
  Region region{{1 / kMs, 1 / kMs}, 0, 30 * kMs, 0.01 * kMs};
  SharingModel model = model_of(region);
  region.run(model);
  EXPECT_EQ(model.phase(), Phase::kAlone);
}

TEST(SharingModel, FindsOutLaterThatDearDataStay) {
  Region region{{1 / kMs, 1 / kMs}, 20 * kMs, 0, 0.01 * kMs};
  SharingModel model = model_of(region);
  region.run(model);
  EXPECT_EQ(model.phase(), Phase::kAlone);
  for (int i = 0; i < 20000 && model.phase() != Phase::kShared; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kShared);
}

TEST(SharingModel, TriesWhatItCannotTell) {
  Region region{{1 / kMs, 1 / kMs}, 0.2 * kMs, 0.9 * kMs, 0.03 * kMs};
  SharingModel model = model_of(region);
  for (int i = 0; i < 2; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kTrial);
  for (int i = 0; i < 2; ++i) region.run(model);
  EXPECT_NE(model.phase(), Phase::kTrial);
  EXPECT_TRUE(model.findings().tried_alone);
}

TEST(SharingModel, StallElsewhereCounts) {
  Region region{{1 / kMs, 1 / kMs}, 0, 0, 0.01 * kMs};
  SharingModel model = model_of(region);
  for (int i = 0; i < 8; ++i) {
    region.run(model);
    model.charge(static_cast<Nanos>(kMs));  // serial code fetches back what the nodes wrote
  }
  EXPECT_EQ(model.phase(), Phase::kAlone);
}

TEST(SharingModel, DropsANodeThatSavesLessThanItCosts) {
  Region region{{1 / kMs, 1 / kMs, 0.001 / kMs}, 0, 0, 0.02 * kMs};
  SharingModel model = model_of(region);
  for (int i = 0; i < 10; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kShared);
  EXPECT_GT(model.powers()[1], 0);
  EXPECT_EQ(model.powers()[2], 0);
}

TEST(SharingModel, GoesBackWhenSharingBecomesDear) {
  Region region{{1 / kMs, 1 / kMs}, 0, 0, 0.01 * kMs};
  SharingModel model = model_of(region);
  for (int i = 0; i < 10; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kShared);
  region.settled_stall = 5 * kMs;
  for (int i = 0; i < 10; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kAlone);
  region.settled_stall = 0;
  for (int i = 0; i < 5000 && model.phase() != Phase::kShared; ++i) region.run(model);
  EXPECT_EQ(model.phase(), Phase::kShared);
}

TEST(SharingModel, ByThresholdFaultsDecide) {
  for (const double break_even : {50e3, 200e3}) {
    SharingModel model(std::vector<double>{1, 1}, SharingModel::Rule::kThreshold);
    model.set_break_even(std::vector<double>{0, break_even});
    // 100 us between two faults.
    std::vector<RegionPart> nodes(2);
    for (RegionPart& node : nodes) {
      node = {.threads = 1, .work = 0.5, .busy = 1'000'000, .stall = 0, .faults = 10};
    }
    for (int run = 0; run < 12 && model.shares(); ++run) {
      model.observe_shared(nodes, 1'000'000, true);
    }
    EXPECT_EQ(model.shares(), break_even < 100e3);
  }
}

// Over many executions the choice costs little against the best one, whatever the region.
TEST(SharingModel, IsCloseToTheBestOnRandomMachines) {
  double worst = 0, sum = 0;
  constexpr int kCases = 300, kRuns = 600;
  for (int seed = 1; seed <= kCases; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto uniform = [&random](double low, double high) {
      return std::uniform_real_distribution<>(low, high)(random);
    };
    Region region;
    const int nodes = std::uniform_int_distribution<>(2, 8)(random);
    const double time = kMs * std::exp(uniform(-3, 3));
    for (int i = 0; i < nodes; ++i) region.speeds.push_back(uniform(0.1, 1) / time);
    region.speeds[0] = 1 / time;
    region.cold_stall = time * std::exp(uniform(-4, 1));
    region.settled_stall = time * std::exp(uniform(-6, 3));
    region.rest = 10 * base::kMicrosecond;
    region.noise = 0.02;
    region.random.seed(static_cast<std::uint64_t>(seed));
    SharingModel model = model_of(region);
    double total = 0;
    for (int i = 0; i < kRuns; ++i) total += region.run(model);
    const double ratio = total / (region.ideal() * kRuns);
    worst = std::max(worst, ratio);
    sum += ratio;
    ASSERT_LT(ratio, 1.25) << "seed " << seed << " phase " << name_of(model.phase());
  }
  // Deterministic; pinned a little above what was seen.
  RecordProperty("mean", std::to_string(sum / kCases));
  EXPECT_LT(sum / kCases, 1.04);
  std::printf("distance to the best: mean %.4f, worst %.4f\n", sum / kCases, worst);
}


// Loops that measure their nodes themselves have found some idle: the region goes without them,
// and tries them again after a while.
TEST(SharingModel, LeavesOutWhomItsLoopsHaveNoUseFor) {
  SharingModel model(std::vector<double>{1, 1, 1});
  const std::vector<RegionPart> parts(3, {.threads = 1, .work = 1.0 / 3, .busy = 1'000'000});
  const bool third[] = {false, false, true}, all[] = {true, true, true};
  for (int run = 0; run < 4; ++run) model.observe_shared(parts, 1'010'000, true);
  ASSERT_EQ(model.phase(), SharingModel::Phase::kShared);
  const std::uint32_t version = model.version();
  model.leave_out(third);
  EXPECT_TRUE(model.shares());
  EXPECT_EQ(model.powers()[2], 0);
  EXPECT_GT(model.powers()[1], 0);
  EXPECT_NE(model.version(), version);
  model.leave_out(third);
  EXPECT_EQ(model.version(), version + 1) << "it is left out already";
  model.leave_out(all);
  EXPECT_FALSE(model.shares());
  EXPECT_GT(model.powers()[0], 0) << "the origin stays";
  for (int run = 0; run < 10'000 && !model.shares(); ++run) model.observe_alone(3'000'000);
  ASSERT_TRUE(model.shares()) << "times change";
  EXPECT_GT(model.powers()[1], 0);
  EXPECT_GT(model.powers()[2], 0);

  SharingModel always(std::vector<double>{1, 1}, SharingModel::Rule::kAlways);
  always.observe_shared(std::vector<RegionPart>(2, parts[0]), 1'010'000, true);
  always.leave_out(std::span(all).first(2));
  EXPECT_TRUE(always.shares());
}

}  // namespace
}  // namespace amasia::loops
