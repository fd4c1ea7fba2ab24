// SPDX-License-Identifier: Apache-2.0
#include "tools/explain_command.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "launch/launch.hpp"

namespace amasia::tools {
namespace {

using base::JobStatistics;
using base::kMicrosecond;
using base::kMillisecond;
using base::RegionStatistics;
using Json = nlohmann::json;

JobStatistics sample() {
  JobStatistics job;
  job.nodes = {{.id = 0}, {.id = 1}, {.id = 2}};
  RegionStatistics region;
  region.site = "quick.c:3 main";
  region.runs = region.single_node_runs = 2;
  region.nodes = 1;
  region.elapsed_ns = kMillisecond;
  region.single_node_reason = "it has one thread";
  job.regions.push_back(region);
  region = {};
  region.site = "long.c:7 \x1b[2Jmain";
  region.runs = 12;
  region.nodes = 2;
  region.elapsed_ns = 300 * kMillisecond;
  region.phase = RegionStatistics::Phase::kShared;
  region.per_node = {{.id = 0, .threads = 1, .work = 0.75, .busy_ns = 20 * kMillisecond},
                     {.id = 1,
                      .threads = 1,
                      .work = 0.25,
                      .busy_ns = 19 * kMillisecond,
                      .stall_ns = 300 * kMicrosecond},
                     {.id = 2, .dropped = true}};
  region.csr = {1.0, 0.33, std::nullopt};
  region.predicted_alone_ns = 26'900 * kMicrosecond;
  region.predicted_shared_ns = 20 * kMillisecond;
  region.stall_ns_expected = 300 * kMicrosecond;
  region.charged_ns = 4;
  region.fork_join_ns = 5;
  region.tried_alone = true;
  region.shared = {9, 200 * kMillisecond, 8, 168 * kMillisecond};
  region.alone = {2, 55 * kMillisecond, 1, 26'900 * kMicrosecond};
  base::LoopStatistics loop;
  loop.site = "long.c:9 main";
  loop.kind = loop.schedule = "dynamic";
  loop.form = base::LoopStatistics::Form::kPool;
  loop.runs = 9;
  loop.iterations = 9005;
  loop.per_node = {{.id = 0, .share = 0.75, .csr = 1, .probes = 9, .compute_ns = 2000},
                   {.id = 1, .share = 0.25, .csr = 0.3, .probes = 1, .compute_ns = 6000.5},
                   {.id = 2}};
  loop.elapsed_ns = 9 * kMillisecond;
  loop.predicted_runs = 8;
  loop.predicted_ns = 8 * kMillisecond;
  loop.measured_ns = 9 * kMillisecond;
  region.loops = {loop};
  region.loops_left_out = 2;
  job.regions.push_back(region);
  return job;
}

TEST(Explain, TellsForEachRegionWhatWasMeasuredAndWhy) {
  EXPECT_EQ(
      explanation(sample()),
      "3 nodes, 2 parallel regions of 301.0 ms in all\n"
      "For each node its threads, its part of the work, how long a thread computed and waited "
      "for\n"
      "pages (stall) in the latest shared run, and the speed of a core, the fastest being 1.\n"
      "\n"
      "long.c:7 ?[2Jmain\n"
      "  300.0 ms in 12 runs: 9 shared, 2 on node 0 alone, 1 for another reason\n"
      "  shared 0.75 : 0.25: 21.0 ms a run, where node 0 alone took 26.9 ms when tried; node 2 "
      "would save less than it costs\n"
      "         node  threads     work  computing      stall      CSR\n"
      "            0        1     0.75    20.0 ms       0 ns     1.00\n"
      "            1        1     0.25    19.0 ms   300.0 us     0.33\n"
      "            2        -        -          -          -        -  has no part any more\n"
      "      one run  predicted   measured     off by  mean of\n"
      "       shared    20.0 ms    21.0 ms     +5.0 %  8 runs\n"
      "    on node 0    26.9 ms    26.9 ms     +0.0 %  1 run; predicted by a trial\n"
      "    loop at long.c:9 main, dynamic, 9 runs of about 1000 iterations\n"
      "      shared 0.75 : 0.25 : 0.00: an iteration takes 2000 ns on node 0, 6001 ns on node 1; "
      "without node 2, which would add too little\n"
      "         node    share      CSR  computing      stall  per iteration, measured in\n"
      "            0     0.75     1.00  2000.0 ns     0.0 ns  9 runs\n"
      "            1     0.25     0.30  6000.5 ns     0.0 ns  1 run\n"
      "            2     0.00        -          -          -  no run\n"
      "      predicted 1.0 ms a run, measured 1.1 ms (+12.5 %), mean of 8 runs\n"
      "    2 runs of further loops are not told apart\n"
      "\n"
      "quick.c:3 main\n"
      "  1.0 ms in 2 runs\n"
      "  on node 0 only: it has one thread\n");
}

TEST(Explain, TellsWhatWasCountedAndOfAnotherNode) {
  JobStatistics job = sample();
  RegionStatistics& region = job.regions[1];
  region.phase = RegionStatistics::Phase::kElsewhere;
  region.runs = 15;
  region.elsewhere = {3, 30 * kMillisecond, 2, 20 * kMillisecond};
  region.elsewhere_node = 1;
  region.profiled = region.gathered = true;
  region.until_retried_ns = 70;
  region.misses_per_kilo = 2.5;
  region.work_of_first_half = 0.375;
  region.per_node[1].misses_per_kilo = 0.75;
  const auto read = launch::parse_statistics(to_json(job));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const std::string text = explanation(read.value());
  const auto has = [&text](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(": 9 shared, 2 on node 0 alone, 3 on another node, 1 for another reason\n"));
  EXPECT_TRUE(has("  on node 1 only, with other regions: 10.0 ms a run, where node 0 "
                  "alone would take 26.9 ms"));
  EXPECT_TRUE(has("; 2.5 cache misses in 1000 instructions"));
  EXPECT_TRUE(has("\n  its iterations are unlike: the first half is 0.38 of the work\n"));
  EXPECT_TRUE(has("     CSR   misses of 1000\n"));
  EXPECT_TRUE(has("    1.00                -\n"));
  EXPECT_TRUE(has("    0.33             0.75\n"));
  EXPECT_TRUE(has("    on node 1          -    10.0 ms          -  2 runs\n")) << text;
}

TEST(Explain, SaysWhatToDoAboutAnUnevenRegionThatRanOnce) {
  JobStatistics job = sample();
  RegionStatistics& region = job.regions[1];
  EXPECT_EQ(explanation(job).find("uneven"), std::string::npos);
  region.runs = 1;
  region.phase = RegionStatistics::Phase::kWarm;
  region.shared = {1, 80 * kMillisecond, 0, 0};
  region.alone = {};
  region.per_node[1].busy_ns = 80 * kMillisecond;
  region.loops[0].form = base::LoopStatistics::Form::kBlocks;
  EXPECT_NE(explanation(job).find("\n  uneven: node 0 took 20.0 ms, node 1 80.3 ms; "),
            std::string::npos)
      << explanation(job);
}

TEST(Explain, OfARunWithoutRegionsSaysSo) {
  JobStatistics job;
  job.nodes.resize(1);
  EXPECT_EQ(explanation(job), "1 node, 0 parallel regions of 0 ns in all\n");
}

TEST(StatisticsFile, ReadsWhatIsWritten) {
  const JobStatistics job = sample();
  const auto read = launch::parse_statistics(base::to_json(job));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(explanation(read.value()), explanation(job));
  ASSERT_EQ(read.value().regions.size(), 2u);
  // The rest of it: each key but the nodes' counters, which are not read.
  JobStatistics regions_only = read.value(), expected = job;
  regions_only.nodes.clear();
  expected.nodes.clear();
  EXPECT_EQ(base::to_json(regions_only), base::to_json(expected));
}

TEST(StatisticsFile, LeavesUnknownKeysAlone) {
  Json document = Json::parse(base::to_json(sample()));
  document["lanes"] = Json::array();
  document["regions"][0]["probes"] = 3;
  EXPECT_TRUE(launch::parse_statistics(document.dump()).ok());
}

TEST(StatisticsFile, EveryKeyThatIsMissingIsNamed) {
  const Json whole = Json::parse(base::to_json(sample()));
  for (const auto& [key, value] : whole["regions"][1].items()) {
    if (key == "reason") continue;  // told again from the others
    Json document = whole;
    document["regions"][1].erase(key);
    const auto read = launch::parse_statistics(document.dump());
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_EQ(read.error().message,
              "is not what --stats=FILE writes: regions[1]." + key + " is missing");
  }
}

TEST(StatisticsFile, EveryKeyOfALoopThatIsMissingIsNamed) {
  const Json whole = Json::parse(base::to_json(sample()));
  for (const auto& [key, value] : whole["regions"][1]["loops"][0].items()) {
    if (key == "reason") continue;  // told again from the others
    Json document = whole;
    document["regions"][1]["loops"][0].erase(key);
    const auto read = launch::parse_statistics(document.dump());
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_EQ(read.error().message,
              "is not what --stats=FILE writes: regions[1].loops[0]." + key + " is missing");
  }
}

TEST(StatisticsFile, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is not JSON"},
      {"{\"nodes\":[", "is not JSON"},
      {"[]", "is not what --stats=FILE writes: the whole is not an object"},
      {"3", "is not what --stats=FILE writes: the whole is not an object"},
      {"{}", "is not what --stats=FILE writes: nodes is missing"},
      {"{\"nodes\":[],\"regions\":{}}", "is not what --stats=FILE writes: regions is not a list"},
      {"{\"nodes\":[7],\"regions\":[]}",
       "is not what --stats=FILE writes: nodes[0] is not an object"},
      {"{\"nodes\":[{\"id\":-1}],\"regions\":[]}",
       "is not what --stats=FILE writes: nodes[0].id is not a whole number from 0 to 4294967295"},
  };
  for (const auto& [text, message] : cases) {
    const auto read = launch::parse_statistics(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().message, message) << text;
  }
}

TEST(StatisticsFile, RefusesAPhaseARatioAndAPartThatCannotBe) {
  const Json whole = Json::parse(base::to_json(sample()));
  const auto message_with = [&](const char* pointer, const Json& value) {
    Json document = whole;
    document[Json::json_pointer(pointer)] = value;
    const auto read = launch::parse_statistics(document.dump());
    return read.ok() ? std::string("nothing") : read.error().message;
  };
  const std::string start = "is not what --stats=FILE writes: regions[1].";
  EXPECT_EQ(message_with("/regions/1/phase", "hot"), start + "phase is 'hot', which is none");
  EXPECT_EQ(message_with("/regions/1/rule", ""), start + "rule is '', which is none");
  EXPECT_EQ(message_with("/regions/1/csr/1", 1.5),
            start + "csr[1] is neither null nor a number from 0 to 1");
  EXPECT_EQ(message_with("/regions/1/per_node/1/work", -0.5),
            start + "per_node[1].work is not a number from 0 to 1");
  EXPECT_EQ(message_with("/regions/1/loops/0/form", "heap"),
            start + "loops[0].form is 'heap', which is none");
  EXPECT_EQ(message_with("/regions/1/loops/0/per_node/0/csr", -1),
            start + "loops[0].per_node[0].csr is neither null nor a number from 0 to 1");
  EXPECT_EQ(message_with("/regions/1/shared", 3), start + "shared is not an object");
  EXPECT_EQ(message_with("/regions/1/tried_alone", 0),
            start + "tried_alone is neither true nor false");
  EXPECT_EQ(message_with("/regions/1/elapsed_ns", 1e30),
            start + "elapsed_ns is not a whole number from 0 to 1000000000000000000");
}

// Bytes of a good document replaced at random are read or refused with a sentence.
TEST(StatisticsFile, WithstandsDamage) {
  const std::string good = base::to_json(sample());
  std::mt19937_64 random(20221121);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random() % 256);
    if (round % 3 == 0) text.resize(random() % text.size());
    const auto read = launch::parse_statistics(text);
    if (read.ok()) {
      EXPECT_FALSE(explanation(read.value()).empty());
    } else {
      ++refused;
      EXPECT_EQ(read.error().message.find("is not "), 0u) << read.error().message;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace amasia::tools
