// SPDX-License-Identifier: Apache-2.0
#include "tools/calibration_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tools/calibrate_command.hpp"

namespace amasia::tools {
namespace {

using machine::Transfers;

// A node as the model has it, up to `most` operations per byte.
MeasuredNode node_by_model(double core_ops_per_s, std::uint32_t threads, double page_ns,
                           Transfers transfers, double most = 16384) {
  MeasuredNode out;
  out.threads = threads;
  out.peak_ops_per_s = core_ops_per_s * threads;
  out.fault_latency_ns = page_ns * 5;
  out.page_stream_ns = out.bare_page_ns = out.bare_fault_ns = page_ns;
  for (double ops = 1; ops <= most; ops *= 2) {
    const double part = machine::model_part(core_ops_per_s, page_ns, ops, transfers);
    out.points.push_back(
        {ops, part * out.peak_ops_per_s, ops * 4096 / core_ops_per_s * 1e9 / part});
  }
  return out;
}

Measurements job_by_model(std::size_t nodes) {
  Measurements out;
  out.identity.emplace();
  for (std::size_t i = 0; i < nodes; ++i) {
    out.identity->nodes.push_back({"host", "cpu", 2});
    out.nodes.push_back(
        node_by_model(2e9 / static_cast<double>(i + 1), 2, i == 0 ? 0 : 30e3, Transfers::kInTurns));
  }
  return out;
}

TEST(CalibrationReport, CurveAndModelAgreeWhereTheModelHolds) {
  std::mt19937 random(31);
  std::uniform_real_distribution<double> speed(1e8, 1e10), cost(2e3, 200e3);
  for (int round = 0; round < 300; ++round) {
    const auto transfers = random() % 2 == 0 ? Transfers::kInTurns : Transfers::kOverlapped;
    const MeasuredNode node =
        node_by_model(speed(random), 1 + random() % 8, cost(random), transfers, 1 << 20);
    const Evaluation found = evaluate(node);
    EXPECT_TRUE(found.agrees());
    // And they do not, if pages cost ten times what was told.
    MeasuredNode dear = node;
    dear.bare_page_ns /= 10;
    if (transfers == Transfers::kInTurns && found.in_turns.ops_per_byte > 20) {
      EXPECT_FALSE(evaluate(dear).agrees());
    }
  }
}

TEST(CalibrationReport, KeepsWhatWasMeasuredOfEachNode) {
  const Measurements job = job_by_model(3);
  const machine::Calibration kept = calibration_of(job, machine::Method::kFull, 17);
  ASSERT_EQ(kept.nodes.size(), 3u);
  EXPECT_EQ(kept.measured_s, 17);
  EXPECT_EQ(kept.nodes[0].fault_latency_ns, 0);
  EXPECT_EQ(kept.nodes[0].break_even_ns_per_fault, 0);
  EXPECT_NEAR(kept.core_speed_ratio(NodeId{1}), 0.5, 1e-9);
  EXPECT_NEAR(kept.nodes[1].break_even_ns_per_fault, 100e3, 5e3);
  EXPECT_NEAR(kept.nodes[1].break_even_ops_per_byte, 17.1, 1);
}

TEST(CalibrationReport, ACurveThatNeverComesNearItsPeakKeepsTheModels) {
  Measurements job = job_by_model(2);
  for (auto& point : job.nodes[1].points) point.ops_per_s = job.nodes[1].peak_ops_per_s / 2;
  EXPECT_NE(table_of(job, *job.identity).find("never"), std::string::npos);
  const machine::Calibration kept = calibration_of(job, machine::Method::kFull, 0);
  EXPECT_NEAR(kept.nodes[1].break_even_ns_per_fault, 100e3, 1);
}

TEST(CalibrationReport, TheTableHasARowForEachNodeAndPoint) {
  for (const std::size_t nodes : {1u, 2u, 5u, 9u}) {
    const Measurements job = job_by_model(nodes);
    const std::string table = table_of(job, *job.identity);
    const auto lines = std::count(table.begin(), table.end(), '\n');
    const std::size_t blocks = (nodes + 3) / 4;
    EXPECT_EQ(static_cast<std::size_t>(lines), 4 + nodes + blocks * (3 + 15));
    EXPECT_EQ(table.find(" \n"), std::string::npos);
  }
}

TEST(CalibrationReport, ThePlotHasACurveForEachNodeAndSurvivesQuotes) {
  const Measurements job = job_by_model(3);
  const std::string script = plot_script(job, *job.identity, "/tmp/it's.png");
  EXPECT_NE(script.find("set output '/tmp/it''s.png'"), std::string::npos);
  EXPECT_NE(script.find("$node2 using 1:3"), std::string::npos);
  EXPECT_EQ(script.find("$node0 using 1:3"), std::string::npos);  // it has no faults
  EXPECT_NE(script.find("break-even: 17.4 operations/byte"), std::string::npos);
}

TEST(CalibrationReport, WhatTheProgramPrintsIsReadOrRefused) {
  const std::string point =
      R"({"ops_per_byte": 4, "ops_per_s": 2e9, "thread_ns": 9e6, "stall_ns": 1, "faults": 3,
          "pages": 10})";
  const std::string node = R"({"node": 0, "threads": 2, "peak_ops_per_s": 3e9,
      "fault_latency_ns": 5e4, "page_stream_ns": 4e3, "bare": )" +
                           point + R"(, "points": [)" + point + "]}";
  const auto read = parse_measurements(R"({"identity": null, "nodes": [)" + node + "]}");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FALSE(read.value().identity.has_value());
  EXPECT_EQ(read.value().nodes[0].bare_page_ns, 9e5);
  EXPECT_EQ(read.value().nodes[0].points[0].fault_period_ns, 3e6);
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string(R"({"identity": null, "nodes": []})"),
        R"({"identity": {"nodes": [], "settings": {}}, "nodes": [)" + node + "]}",
        R"({"identity": null, "nodes": [{"node": 0}]})" + std::string()}) {
    EXPECT_FALSE(parse_measurements(text).ok()) << text;
  }
}

TEST(CalibrateArguments, OwnOnesAreTakenOutAndTheOthersKeepTheirOrder) {
  const char* const arguments[] = {"-n", "3", "--quick", "--plot", "a.png", "--netns"};
  const auto taken = take_calibrate_arguments(arguments);
  ASSERT_TRUE(taken.ok());
  EXPECT_TRUE(taken.value().quick);
  EXPECT_EQ(taken.value().plot, "a.png");
  const std::vector<std::string> kept(taken.value().of_run.begin(), taken.value().of_run.end());
  EXPECT_EQ(kept, (std::vector<std::string>{"-n", "3", "--netns"}));
  const char* const nameless[] = {"--plot"};
  EXPECT_FALSE(take_calibrate_arguments(nameless).ok());
  const char* const empty[] = {"--plot="};
  EXPECT_FALSE(take_calibrate_arguments(empty).ok());
}

}  // namespace
}  // namespace amasia::tools
