// SPDX-License-Identifier: Apache-2.0
// How far each schedule is from the ideal in virtual time, pinned: loops_simulation_bench prints
// the whole table.
#include "loops/loop_simulation.hpp"

#include <gtest/gtest.h>

#include <map>

namespace amasia::loops::simulation {
namespace {

constexpr int kRuns = 5;

struct Case {
  std::string name;
  std::string loop;
  std::size_t nodes = 0;
  bool irregular = false;
  std::map<ScheduleKind, std::pair<double, double>> ratios;  // first and last run to the ideal
  std::map<ScheduleKind, double> with_speeds;                // first run, nodes' speeds known
  double in_parts = 0;                                       // the same, of a static loop
};

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> out;
    for (const bool dear : {false, true}) {
      for (const Machine& machine : machines()) {
        for (const Workload& work : workloads(dear)) {
          Simulation simulation(machine, work);
          const double ideal = simulation.ideal();
          Case one{machine.name + (dear ? ", dear, " : ", cheap, ") + work.name, work.name,
                   machine.speeds.size(), work.irregular, {}, {}};
          for (std::size_t k = 0; k < kScheduleKinds; ++k) {
            const auto kind = static_cast<ScheduleKind>(k);
            const auto times = simulation.run(kind, 0, {}, kRuns);
            one.ratios[kind] = {times.front() / ideal, times.back() / ideal};
            one.with_speeds[kind] = simulation.run(kind, 0, {}, 1, true).front() / ideal;
          }
          one.in_parts = simulation.run_in_parts() / ideal;
          out.push_back(one);
        }
      }
    }
    return out;
  }();
  return cases;
}

std::pair<double, double> mean(ScheduleKind kind, const std::string& loop = "") {
  double first = 0, last = 0;
  int count = 0;
  for (const Case& one : all_cases()) {
    if (!loop.empty() && one.loop != loop) continue;
    first += std::log(one.ratios.at(kind).first);
    last += std::log(one.ratios.at(kind).second);
    ++count;
  }
  return {std::exp(first / count), std::exp(last / count)};
}

TEST(LoopSimulation, DistanceToTheIdealIsPinned) {
  const std::map<ScheduleKind, std::pair<double, double>> pinned = {
      {ScheduleKind::kStatic, {2.76, 2.76}},   {ScheduleKind::kDynamic, {1.24, 1.17}},
      {ScheduleKind::kGuided, {1.38, 1.17}},   {ScheduleKind::kFac2, {2.13, 2.13}},
      {ScheduleKind::kWf, {2.13, 1.21}},       {ScheduleKind::kAwf, {2.13, 1.27}},
      {ScheduleKind::kHetProbe, {1.53, 1.08}}, {ScheduleKind::kHetProbeI, {1.08, 1.035}}};
  for (const auto& [kind, most] : pinned) {
    const auto [first, last] = mean(kind);
    std::printf("%s: first run %.3f, last %.3f\n", schedule_of(kind).name.data(), first, last);
    EXPECT_LE(first, most.first) << schedule_of(kind).name;
    EXPECT_LE(last, most.second) << schedule_of(kind).name;
    EXPECT_GE(first, 0.99) << "the ideal is one";
  }
}

// The first run of a loop whose region has measured the nodes by its other loops or executions.
TEST(LoopSimulation, SpeedsOfTheRegionAreAGoodBegin) {
  const std::map<ScheduleKind, double> pinned = {
      {ScheduleKind::kDynamic, 1.16},  {ScheduleKind::kGuided, 1.17},
      {ScheduleKind::kWf, 1.29},       {ScheduleKind::kAwf, 1.35},
      {ScheduleKind::kHetProbe, 1.47}, {ScheduleKind::kHetProbeI, 1.07}};
  for (const auto& [kind, most] : pinned) {
    double sum = 0;
    for (const Case& one : all_cases()) sum += std::log(one.with_speeds.at(kind));
    const double first = std::exp(sum / static_cast<double>(all_cases().size()));
    std::printf("%s: first run with speeds %.3f\n", schedule_of(kind).name.data(), first);
    EXPECT_LE(first, most) << schedule_of(kind).name;
    EXPECT_LT(first, mean(kind).first) << schedule_of(kind).name;
  }
}

// A static loop of which nothing is known but the nodes' speeds: in parts it is as good where
// iterations are alike, and near the ideal where they are not. Pages that are dear are another
// matter: then the region's next executions decide.
TEST(LoopSimulation, StaticLoopsInPartsAreEvenedOut) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const Case& one : all_cases()) {
    if (one.name.find(", cheap, ") == std::string::npos) continue;
    auto& [sum, count] = sums[one.loop];
    sum += std::log(one.in_parts);
    ++count;
  }
  const std::map<std::string, double> pinned = {
      {"regular", 1.01}, {"linear", 1.05}, {"random", 1.05}, {"phases", 1.13}};
  for (const auto& [loop, most] : pinned) {
    const double mean = std::exp(sums.at(loop).first / sums.at(loop).second);
    std::printf("in parts, %s: %.3f\n", loop.c_str(), mean);
    EXPECT_LE(mean, most) << loop;
  }
}

TEST(LoopSimulation, ProbingFindsTheSharesOfRegularLoops) {
  for (const Case& one : all_cases()) {
    if (one.irregular || one.nodes > 8) continue;
    for (const ScheduleKind kind : {ScheduleKind::kHetProbe, ScheduleKind::kHetProbeI}) {
      EXPECT_LE(one.ratios.at(kind).first, 1.08) << one.name;
      EXPECT_LE(one.ratios.at(kind).second, 1.06) << one.name;
    }
  }
}

TEST(LoopSimulation, ProbingAgainPaysWhereIterationsDiffer) {
  for (const std::string loop : {"linear", "random", "phases"}) {
    EXPECT_LT(mean(ScheduleKind::kHetProbeI, loop).first, mean(ScheduleKind::kHetProbe, loop).first)
        << loop;
  }
  std::vector<std::string> behind;
  for (const Case& one : all_cases()) {
    if (!one.irregular) continue;
    const double once = one.ratios.at(ScheduleKind::kHetProbe).first;
    if (one.ratios.at(ScheduleKind::kHetProbeI).first > 1.02 * once) behind.push_back(one.name);
  }
  // None, even where halves suit one node each, so that even shares happen to be the best, and
  // where a node that is ten times faster than the one with the data is nearly all that is needed.
  EXPECT_TRUE(behind.empty()) << testing::PrintToString(behind);
}

}  // namespace
}  // namespace amasia::loops::simulation
