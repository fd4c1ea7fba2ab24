// SPDX-License-Identifier: Apache-2.0
#include "machine/break_even.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace amasia::machine {
namespace {

// A node's curve by the model, at the powers of two that the microbenchmark measures.
std::vector<CurvePoint> curve(double core_ops_per_s, unsigned threads, double page_cost_ns,
                              Transfers transfers) {
  std::vector<CurvePoint> points;
  for (double ops = 1.0 / 16; ops < 1e9; ops *= 2) {
    const double part = model_part(core_ops_per_s, page_cost_ns, ops, transfers);
    const double work_ns = ops * 4096 / core_ops_per_s * 1e9;
    points.push_back({ops, part * core_ops_per_s * threads, work_ns / part});
  }
  return points;
}

TEST(BreakEven, ThePapersFasterLinkComesOutAsInThePaper) {
  // 30 us a fault; "100 us/fault" is where sharing pays, at 512 operations a byte.
  const BreakEven found = model_break_even(30e9, 30e3, 30e3, Transfers::kInTurns);
  EXPECT_NEAR(found.fault_period_ns, 100e3, 1);
  EXPECT_NEAR(found.ops_per_byte, 512, 5);
}

TEST(BreakEven, TheModelReachesJustTheDefinedPartThere) {
  std::mt19937 random(20);
  std::uniform_real_distribution<double> exponent(0, 1);
  for (int round = 0; round < 1000; ++round) {
    const double speed = 1e7 * std::pow(1e4, exponent(random));
    const double cost = 100 * std::pow(1e5, exponent(random));
    for (const Transfers transfers : {Transfers::kInTurns, Transfers::kOverlapped}) {
      const BreakEven found = model_break_even(speed, cost, cost, transfers);
      EXPECT_NEAR(model_part(speed, cost, found.ops_per_byte, transfers), kBreakEvenPart, 1e-9);
      // Of a period the thread waits for 1 - part of it.
      const double work = found.ops_per_byte * 4096 / speed * 1e9;
      EXPECT_NEAR(work / found.fault_period_ns, kBreakEvenPart, 1e-9);
    }
  }
}

TEST(BreakEven, TheCurveOfTheModelGivesWhatTheModelGives) {
  std::mt19937 random(21);
  std::uniform_real_distribution<double> exponent(0, 1);
  for (int round = 0; round < 500; ++round) {
    const double speed = 1e7 * std::pow(1e4, exponent(random));
    const double cost = 100 * std::pow(1e5, exponent(random));
    const unsigned threads = 1 + random() % 64;
    for (const Transfers transfers : {Transfers::kInTurns, Transfers::kOverlapped}) {
      const BreakEven expected = model_break_even(speed, cost, cost, transfers);
      if (expected.ops_per_byte < 1.0 / 16) continue;  // left of the curve
      const auto found =
          measured_break_even(curve(speed, threads, cost, transfers), speed * threads);
      ASSERT_TRUE(found.has_value());
      // Straight lines between powers of two on log axes: off by little.
      EXPECT_NEAR(found->ops_per_byte / expected.ops_per_byte, 1, 0.1);
      EXPECT_NEAR(found->fault_period_ns / expected.fault_period_ns, 1, 0.35);
    }
  }
}

TEST(BreakEven, ACurveThatDipsCountsFromWhereItStaysUp) {
  const std::vector<CurvePoint> points = {
      {1, 10, 100}, {2, 80, 110}, {4, 60, 130}, {8, 75, 150}, {16, 90, 200}};
  const auto found = measured_break_even(points, 100);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->ops_per_byte, 4);
  EXPECT_LT(found->ops_per_byte, 8);
  EXPECT_GT(found->fault_period_ns, 130);
  EXPECT_LT(found->fault_period_ns, 150);
}

TEST(BreakEven, ACurveWithoutACrossing) {
  const std::vector<CurvePoint> points = {{1, 50, 100}, {2, 60, 100}};
  EXPECT_FALSE(measured_break_even(points, 100).has_value());
  EXPECT_FALSE(measured_break_even({}, 100).has_value());
  const auto all_above = measured_break_even(points, 60);
  ASSERT_TRUE(all_above.has_value());
  EXPECT_EQ(all_above->ops_per_byte, 1);
}

}  // namespace
}  // namespace amasia::machine
