// SPDX-License-Identifier: Apache-2.0
#include "base/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/sharing_reason.hpp"

namespace amasia::base {
namespace {

JobStatistics sample() {
  JobStatistics job;
  job.nodes.push_back({.id = 0, .pid = 10, .faults_read = 3, .bytes_in = 4096, .stall_ns = 1500});
  job.nodes.push_back({.id = 1,
                       .pid = 11,
                       .faults_write = 7,
                       .messages = 9,
                       .pages_offered = 5,
                       .pages_evicted = 6});
  RegionStatistics region;
  region.site = "a \"b\"\n.c:12";
  region.runs = 2;
  region.nodes = 2;
  region.elapsed_ns = 20 * kMillisecond;
  region.phase = RegionStatistics::Phase::kShared;
  region.per_node = {{.id = 0,
                      .threads = 1,
                      .work = 0.75,
                      .busy_ns = 9000,
                      .stall_ns = 10,
                      .misses_per_kilo = 2.5},
                     {.id = 1, .threads = 1, .work = 0.25, .busy_ns = 8000}};
  region.csr = {1.0, 0.3333333, std::nullopt};
  region.predicted_alone_ns = 12 * kMillisecond;
  region.predicted_shared_ns = 9500 * kMicrosecond;
  region.stall_ns_expected = 10;
  region.shared = {2, 20 * kMillisecond, 1, 9 * kMillisecond};
  region.elsewhere = {3, 7000, 0, 0};
  region.elsewhere_node = 1;
  region.profiled = region.gathered = true;
  region.until_retried_ns = 70;
  region.runs_come_home = 1;
  region.lost_before_home_ns = 300;
  region.misses_per_kilo = 2.5;
  region.work_of_first_half = 0.375;
  LoopStatistics loop;
  loop.site = "a.c:13 main";
  loop.kind = "dynamic";
  loop.schedule = "hetprobe-i";
  loop.form = LoopStatistics::Form::kPool;
  loop.chunk = 4;
  loop.runs = 2;
  loop.iterations = 2000;
  loop.per_node = {
      {.id = 0, .share = 0.75, .csr = 1, .probes = 2, .compute_ns = 2000},
      {.id = 1, .share = 0.25, .csr = 0.25, .probes = 1, .compute_ns = 6000.5, .stall_ns = 2000}};
  loop.elapsed_ns = 4000;
  loop.predicted_runs = 1;
  loop.predicted_ns = 1500;
  loop.measured_ns = 1600;
  region.loops = {loop};
  region.loops_left_out = 5;
  job.regions.push_back(region);
  region = {};
  region.site = "main+0x12";
  region.single_node_reason = "doacross loop";
  region.runs = 4;
  region.single_node_runs = 1;
  job.regions.push_back(region);
  return job;
}

TEST(Statistics, JsonHasTheDocumentedFields) {
  EXPECT_EQ(to_json(sample()),
            "{\"nodes\":[{\"id\":0,\"pid\":10,\"faults_read\":3,\"faults_write\":0,"
            "\"faults_upgrade\":0,\"pages_in\":0,\"pages_out\":0,\"bytes_in\":4096,\"bytes_out\":0,"
            "\"messages\":0,\"stall_ns\":1500,\"pages_offered\":0,\"pages_evicted\":0,\"memory_"
            "max\":0},{\"id\":1,"
            "\"pid\":11,\"faults_read\":0,"
            "\"faults_write\":7,\"faults_upgrade\":0,\"pages_in\":0,\"pages_out\":0,\"bytes_in\":0,"
            "\"bytes_out\":0,\"messages\":9,\"stall_ns\":0,\"pages_offered\":5,\"pages_evicted\":6,"
            "\"memory_max\":0}],\"regions\":["
            "{\"site\":\"a \\\"b\\\"\\u000a.c:12\",\"runs\":2,\"nodes\":2,"
            "\"single_node_reason\":null,\"single_node_runs\":0,\"faults\":0,\"stall_ns\":0,"
            "\"elapsed_ns\":20000000,\"reason\":\"shared 0.75 : 0.25, as all regions together are "
            "quicker so: 9.0 ms a run, where node 0 "
            "alone would take 12.0 ms (predicted); it began as an earlier run had found "
            "(--profile); 2.5 cache misses in 1000 instructions\","
            "\"phase\":\"shared\",\"rule\":\"prediction\","
            "\"csr\":[1,0.3333,null],\"per_node\":[{\"id\":0,\"threads\":1,\"work\":0.7500,"
            "\"busy_ns\":9000,\"stall_ns\":10,\"dropped\":false,"
            "\"cache_misses_per_1000_instructions\":2.5},{\"id\":1,\"threads\":1,"
            "\"work\":0.2500,\"busy_ns\":8000,\"stall_ns\":0,\"dropped\":false,"
            "\"cache_misses_per_1000_instructions\":null}],"
            "\"predicted_alone_ns\":12000000,\"predicted_shared_ns\":9500000,"
            "\"stall_ns_expected\":10,\"charged_ns\":0,\"fork_join_ns\":0,\"tried_alone\":false,"
            "\"shared\":{\"runs\":2,\"elapsed_ns\":20000000,\"settled_runs\":1,"
            "\"settled_ns\":9000000},"
            "\"alone\":{\"runs\":0,\"elapsed_ns\":0,\"settled_runs\":0,\"settled_ns\":0},"
            "\"elsewhere\":{\"runs\":3,\"elapsed_ns\":7000,\"settled_runs\":0,"
            "\"settled_ns\":0},\"elsewhere_node\":1,\"profiled\":true,"
            "\"until_retried_ns\":70,\"gathered\":true,"
            "\"runs_come_home\":1,\"lost_before_home_ns\":300,"
            "\"cache_misses_per_1000_instructions\":2.5,\"work_of_first_half\":0.375,"
            "\"loops\":[{\"site\":\"a.c:13 main\",\"kind\":\"dynamic\","
            "\"schedule\":\"hetprobe-i\",\"form\":\"pool\",\"chunk\":4,\"runs\":2,"
            "\"iterations\":2000,\"per_node\":[{\"id\":0,\"share\":0.7500,\"csr\":1,"
            "\"probes\":2,\"compute_ns\":2000.0,\"stall_ns\":0.0},{\"id\":1,\"share\":0.2500,"
            "\"csr\":0.25,\"probes\":1,\"compute_ns\":6000.5,\"stall_ns\":2000.0}],"
            "\"elapsed_ns\":4000,\"predicted_runs\":1,\"predicted_ns\":1500,"
            "\"measured_ns\":1600,\"reason\":\"shared 0.75 : 0.25: an iteration takes 2000 ns on "
            "node 0, 8001 ns on node 1 (2000 ns of it stall)\"}],\"loops_left_out\":5},"
            "{\"site\":\"main+0x12\",\"runs\":4,\"nodes\":0,"
            "\"single_node_reason\":\"doacross loop\",\"single_node_runs\":1,\"faults\":0,"
            "\"stall_ns\":0,\"elapsed_ns\":0,"
            "\"reason\":\"on node 0 only: doacross loop (1 of 4 runs)\",\"phase\":null,"
            "\"rule\":\"prediction\",\"csr\":[],\"per_node\":[],\"predicted_alone_ns\":null,"
            "\"predicted_shared_ns\":null,\"stall_ns_expected\":0,\"charged_ns\":0,"
            "\"fork_join_ns\":0,\"tried_alone\":false,"
            "\"shared\":{\"runs\":0,\"elapsed_ns\":0,\"settled_runs\":0,\"settled_ns\":0},"
            "\"alone\":{\"runs\":0,\"elapsed_ns\":0,\"settled_runs\":0,\"settled_ns\":0},"
            "\"elsewhere\":{\"runs\":0,\"elapsed_ns\":0,\"settled_runs\":0,\"settled_ns\":0},"
            "\"elsewhere_node\":null,\"profiled\":false,\"until_retried_ns\":0,\"gathered\":false,"
            "\"runs_come_home\":0,\"lost_before_home_ns\":0,"
            "\"cache_misses_per_1000_instructions\":null,\"work_of_first_half\":null,"
            "\"loops\":[],\"loops_left_out\":0}]}\n");
}

TEST(Statistics, TableNamesUnitsSharesAndReasons) {
  const std::string table = to_table(sample());
  EXPECT_NE(table.find("    on node 0 only: doacross loop (1 of 4 runs)\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("20.0 ms  0.75 : 0.25\n"), std::string::npos) << table;
  EXPECT_NE(table.find("1500 ns"), std::string::npos) << table;
  EXPECT_NE(table.find("    loop at a.c:13 main, dynamic,4, carried out by hetprobe-i, 2 runs of "
                       "1000 iterations: shared 0.75 : 0.25:"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("    5 runs of further loops are not told apart\n"), std::string::npos);
}

std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

TEST(Statistics, TableStaysWithin120Columns) {
  JobStatistics job = sample();
  RegionStatistics& region = job.regions[0];
  region.site = std::string(300, 's').append(":12 main");
  region.runs = region.faults = 1234567;
  region.nodes = 64;
  region.per_node.clear();
  for (std::uint32_t id = 0; id < 64; ++id) {
    region.per_node.push_back({.id = id, .threads = 1, .work = 1 / 64.0, .dropped = id > 0});
  }
  job.regions[1].single_node_reason = "a" + std::string(200, ' ') + std::string(150, 'x');
  const std::string table = to_table(job);
  std::size_t start = 0, longest = 0;
  while (start < table.size()) {
    const std::size_t end = table.find('\n', start);
    const std::string_view line(table.data() + start, end - start);
    if (line.find("xxx") == std::string_view::npos) longest = std::max(longest, columns_of(line));
    start = end + 1;
  }
  EXPECT_LE(longest, 120u) << table;
  EXPECT_GT(longest, 100u) << "nothing long was there to be broken";
}

TEST(Statistics, PhasesAndRulesAreFoundByTheirNames) {
  using Phase = RegionStatistics::Phase;
  for (const Phase phase :
       {Phase::kNone, Phase::kCold, Phase::kWarm, Phase::kTrial, Phase::kShared, Phase::kAlone}) {
    EXPECT_EQ(phase_named(name_of(phase)), phase);
  }
  EXPECT_FALSE(phase_named("hot"));
  using Rule = RegionStatistics::Rule;
  for (const Rule rule : {Rule::kPrediction, Rule::kAlways, Rule::kThreshold}) {
    EXPECT_EQ(rule_named(name_of(rule)), rule);
  }
  EXPECT_FALSE(rule_named(""));
}

TEST(Statistics, LoopsSayWhyTheyAreWhereTheyAre) {
  using Form = LoopStatistics::Form;
  RegionStatistics region;
  LoopStatistics loop;
  loop.per_node = {{.id = 0, .share = 0.6, .csr = 1}, {.id = 1, .share = 0.4, .csr = 0.5}};
  EXPECT_EQ(loop_reason(region, loop), "shared 0.60 : 0.40 by the speeds of its region");
  loop.form = Form::kChunks;
  EXPECT_EQ(loop_reason(region, loop),
            "dealt 0.60 : 0.40 in turn, chunk by chunk, as the program asks");
  loop.form = Form::kParts;
  EXPECT_EQ(loop_reason(region, loop),
            "shared 0.60 : 0.40 in parts, at first by the speeds of its region");
  region.shared.runs = loop.runs + 1;
  EXPECT_EQ(loop_reason(region, loop), "shared 0.60 : 0.40 in parts when it first ran");
  LoopStatistics at_home;
  at_home.form = Form::kParts;
  EXPECT_EQ(loop_reason(region, at_home), "handed out in parts");
  loop.form = Form::kPool;
  EXPECT_EQ(loop_reason(region, loop),
            "shared 0.60 : 0.40: it is over before any node has to ask for more");
  loop.per_node[0].probes = loop.per_node[1].probes = 3;
  loop.per_node[0].compute_ns = 50;
  loop.per_node[1].stall_ns = 20'000;
  loop.per_node[1].csr = std::nullopt;
  EXPECT_EQ(loop_reason(region, loop),
            "on node 0 only, but for probes (0.60 : 0.40): an iteration takes 50.0 ns on node 0, "
            "20.0 us on node 1 (20.0 us of it stall)");
  region.phase = RegionStatistics::Phase::kAlone;
  EXPECT_EQ(loop_reason(region, loop).find("on node 0 with its region now; before, on node 0 only"),
            0u);
  region.phase = RegionStatistics::Phase::kShared;
  loop.form = Form::kBlocks;
  loop.per_node[0].share = 1;
  loop.per_node[1].share = 0;
  EXPECT_EQ(loop_reason(region, loop), "on node 0 only, as its region is");
  for (const Form form :
       {Form::kBlocks, Form::kChunks, Form::kVectors, Form::kPool, Form::kOrdered}) {
    EXPECT_EQ(form_named(name_of(form)), form);
  }
  EXPECT_FALSE(form_named("heap"));
}

TEST(Statistics, MeansAreOfSettledRunsWhereThereAreAny) {
  RegionOutcome outcome;
  EXPECT_EQ(outcome.mean_ns(), 0);
  outcome.add(90, false);
  EXPECT_EQ(outcome.mean_ns(), 90);
  outcome.add(20, true);
  outcome.add(40, true);
  EXPECT_EQ(outcome.mean_ns(), 30);
  EXPECT_EQ(outcome.elapsed_ns, 150);
}

}  // namespace
}  // namespace amasia::base
