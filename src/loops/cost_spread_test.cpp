// SPDX-License-Identifier: Apache-2.0
#include "loops/cost_spread.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "loops/loop_simulation.hpp"

namespace amasia::loops {
namespace {

using simulation::Machine;
using simulation::Simulation;
using simulation::Workload;

constexpr std::size_t kPieces = CostSpread::kPieces;
constexpr std::uint64_t kCount = 20000;

template <typename Function>
Workload workload(const char* name, Function relative, double total_ns = 20e6) {
  double sum = 0;
  const auto at = [relative](std::uint64_t i) {
    return relative((static_cast<double>(i) + 0.5) / static_cast<double>(kCount));
  };
  for (std::uint64_t i = 0; i < kCount; ++i) sum += at(i);
  return {name, kCount, [at, unit = total_ns / sum](std::uint64_t i) { return at(i) * unit; },
          {}, 1, 0, true};
}

double true_cost_before(const Workload& work, double place) {
  double before = 0, all = 0;
  for (std::uint64_t i = 0; i < work.count; ++i) {
    if (static_cast<double>(i) < place * static_cast<double>(work.count)) before += work.cost(i);
    all += work.cost(i);
  }
  return before / all;
}

std::vector<Workload> smooth_loops() {
  return {workload("rising", [](double x) { return 0.4 + 1.2 * x; }),
          workload("triangle", [](double x) { return 0.02 + x; }),
          workload("falling triangle", [](double x) { return 1.02 - x; }),
          workload("hill", [](double x) { return 0.1 + std::pow(std::sin(3.1 * x), 4); })};
}

std::vector<Machine> machines() {
  return {{"two like nodes", 1, {1, 1}}, {"a third", 1, {1, 0.33}}, {"a faster one", 1, {1, 2}},
          {"with threads", 4, {1, 0.5}}, {"three", 2, {1, 0.5, 0.7}},
          {"four", 1, {1, 0.5, 0.33, 0.25}}};
}

template <typename Check>
void on_all_machines(std::vector<Workload> loops, Check check) {
  for (const Workload& loop : loops) {
    for (const Machine& machine : machines()) {
      for (const bool with_speeds : {false, true}) {
        SCOPED_TRACE(loop.name + " on " + machine.name + (with_speeds ? ", known" : ""));
        Simulation simulation(machine, loop);
        simulation.run_in_parts(with_speeds);
        check(loop, machine, simulation.sketch());
      }
    }
  }
}

TEST(CostSpread, PartsGoToAndFro) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> part(0.01, 1);
  for (int round = 0; round < 1000; ++round) {
    std::array<double, kPieces> costs;
    for (double& cost : costs) cost = part(random);
    const CostSpread spread(costs);
    std::vector<double> parts(1 + random() % 5);
    for (double& one : parts) one = random() % 4 == 0 ? 0 : 3 * part(random);
    parts[random() % parts.size()] = 1;
    const std::vector<double> before = parts;
    spread.to_iterations(parts);
    EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0),
                std::accumulate(before.begin(), before.end(), 0.0), 1e-9);
    spread.to_costs(parts);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_NEAR(parts[i], before[i], 1e-9) << round;
      EXPECT_EQ(parts[i] > 0, before[i] > 0) << round;
    }
  }
}

TEST(CostSpread, IsEvenWhereNothingIsKnown) {
  const CostSpread spread;
  for (const double place : {0.0, 0.1, 0.5, 1.0}) {
    EXPECT_NEAR(spread.cost_before(place), place, 1e-12);
    EXPECT_NEAR(spread.place_of(place), place, 1e-12);
  }
}

// In a few of the 48 cases nodes meet too seldom for that to be clear.
TEST(CostSpread, AgreesWithTimesThatItExplains) {
  std::array<double, kPieces> rising;
  for (std::size_t i = 0; i < kPieces; ++i) rising[i] = 1.0 + static_cast<double>(i);
  const CostSpread spread(rising);
  const std::array speeds = {1.0, 0.5};
  std::array parts = {1.0, 0.5};
  spread.to_iterations(parts);
  const double first = parts[0] / (parts[0] + parts[1]);
  EXPECT_GT(first, 0.75);
  EXPECT_TRUE(spread.agrees(parts, std::array{10.0, 10.0}, speeds));
  EXPECT_TRUE(spread.agrees(parts, std::array{10.0, 13.0}, speeds));
  EXPECT_FALSE(spread.agrees(parts, std::array{first * 30, (1 - first) * 60}, speeds));
}

TEST(CostSketch, FindsOutHowTheCostIsSpread) {
  int unclear = 0;
  on_all_machines(smooth_loops(), [&](const auto& loop, const auto& machine, const auto& sketch) {
    const std::optional<CostSpread> spread = sketch.spread();
    if (!spread.has_value()) {
      ++unclear;
      return;
    }
    for (const double place : {0.1, 0.25, 0.5, 0.75, 0.9}) {
      EXPECT_NEAR(spread->cost_before(place), true_cost_before(loop, place), 0.05) << place;
    }
    const std::vector<double> parts = sketch.parts_given(*spread);
    ASSERT_EQ(parts.size(), machine.speeds.size());
    EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), 1, 1e-9);
  });
  EXPECT_LE(unclear, 8);
}

TEST(CostSketch, SaysNothingOfLoopsThatAreEven) {
  on_all_machines({workload("flat", [](double) { return 1; }),
                   workload("nearly flat", [](double x) { return 1 + 0.1 * x; })},
                  [](const auto&, const auto&, const auto& sketch) {
                    EXPECT_FALSE(sketch.spread().has_value());
                  });
}

// Iterations that jump may be taken for a slow node's; then it is as if nothing were known.
TEST(CostSketch, TakesNoStepForANodesSpeedWhereOthersContradict) {
  const auto step = [](double at) {
    return workload("step", [at](double x) { return x < at ? 1 : 2; });
  };
  int clear = 0;
  on_all_machines({step(0.3), step(0.5), step(0.6), step(0.8)},
                  [&clear](const auto& loop, const auto&, const auto& sketch) {
                    const std::optional<CostSpread> spread = sketch.spread();
                    if (!spread.has_value()) return;
                    ++clear;
                    for (const double place : {0.25, 0.5, 0.75}) {
                      const double truth = true_cost_before(loop, place);
                      EXPECT_LE(std::abs(spread->cost_before(place) - truth),
                                std::max(0.05, 1.2 * std::abs(place - truth)))
                          << place;
                    }
                  });
  EXPECT_GT(clear, 0);
}

TEST(CostSketch, LeavesOutWhatWasDisturbed) {
  CostSketch sketch(3200, 1);
  for (std::uint64_t i = 0; i < kPieces; ++i) sketch.give(0, {100 * i, 100 * i + 100});
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    const bool disturbed = i == 0 || i == 20;
    sketch.tell(0, {.iterations = 100, .cpu_ns = disturbed ? 5'000'000u : 100'000u});
  }
  EXPECT_FALSE(sketch.spread().has_value());
}

TEST(CostSketch, SaysNothingOfWhatIsSoonDone) {
  const auto rising = [](double x) { return 0.1 + x; };
  Simulation brief(machines().front(), workload("brief", rising, 0.5e6));
  brief.run_in_parts();
  EXPECT_FALSE(brief.sketch().spread().has_value());
}

// What it is for: the nodes' next shares end at about the same time.
TEST(CostSketch, BalancesTheNextRun) {
  on_all_machines(smooth_loops(), [](const auto& loop, const auto& machine, const auto& sketch) {
    const std::optional<CostSpread> spread = sketch.spread();
    if (!spread.has_value()) return;
    std::vector<double> parts = machine.speeds;
    spread->to_iterations(parts);
    const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
    double place = 0, least = 1, most = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double to = place + parts[i] / all;
      const double cost = true_cost_before(loop, to) - true_cost_before(loop, place);
      least = std::min(least, cost / machine.speeds[i]);
      most = std::max(most, cost / machine.speeds[i]);
      place = to;
    }
    EXPECT_LT(most / least, 1.35);
  });
}

}  // namespace
}  // namespace amasia::loops
