// SPDX-License-Identifier: Apache-2.0
#include "base/statistics.hpp"

#include <gtest/gtest.h>

namespace amasia::base {
namespace {

JobStatistics sample() {
  JobStatistics job;
  job.nodes.push_back({.id = 0, .pid = 10, .faults_read = 3, .bytes_in = 4096, .stall_ns = 1500});
  job.nodes.push_back({.id = 1, .pid = 11, .faults_write = 7, .messages = 9, .pages_evicted = 6});
  RegionStatistics region;
  region.set_site("a \"b\"\n.c:12");
  region.runs = 2;
  region.nodes = 2;
  region.elapsed_ns = 20 * kMillisecond;
  job.regions.push_back(region);
  region = {};
  region.set_site("main+0x12");
  region.set_single_node_reason("doacross loop");
  region.runs = 4;
  region.single_node_runs = 1;
  job.regions.push_back(region);
  return job;
}

TEST(Statistics, JsonHasTheDocumentedFields) {
  EXPECT_EQ(to_json(sample()),
            "{\"nodes\":[{\"id\":0,\"pid\":10,\"faults_read\":3,\"faults_write\":0,"
            "\"faults_upgrade\":0,\"pages_in\":0,\"pages_out\":0,\"bytes_in\":4096,\"bytes_out\":0,"
            "\"messages\":0,\"stall_ns\":1500,\"pages_evicted\":0,\"memory_max\":0},{\"id\":1,"
            "\"pid\":11,\"faults_read\":0,"
            "\"faults_write\":7,\"faults_upgrade\":0,\"pages_in\":0,\"pages_out\":0,\"bytes_in\":0,"
            "\"bytes_out\":0,\"messages\":9,\"stall_ns\":0,\"pages_evicted\":6,"
            "\"memory_max\":0}],\"regions\":["
            "{\"site\":\"a \\\"b\\\"\\u000a.c:12\",\"runs\":2,\"nodes\":2,"
            "\"single_node_reason\":null,\"single_node_runs\":0,\"faults\":0,\"stall_ns\":0,"
            "\"elapsed_ns\":20000000},{\"site\":\"main+0x12\",\"runs\":4,\"nodes\":0,"
            "\"single_node_reason\":\"doacross loop\",\"single_node_runs\":1,\"faults\":0,"
            "\"stall_ns\":0,\"elapsed_ns\":0}]}\n");
}

TEST(Statistics, TableNamesUnitsAndReasons) {
  const std::string table = to_table(sample());
  EXPECT_NE(table.find("doacross loop (1 of 4 runs)"), std::string::npos) << table;
  EXPECT_NE(table.find("20.0 ms"), std::string::npos) << table;
  EXPECT_NE(table.find("1500 ns"), std::string::npos) << table;
}

TEST(Statistics, MergingSumsFaultsOfTheSameSite) {
  std::vector<RegionStatistics> into(1), from(2);
  into[0].set_site("x.c:1");
  into[0].faults = 5;
  into[0].runs = 3;
  from[0] = into[0];
  from[1].set_site("y.c:2");
  merge_regions(into, from);
  ASSERT_EQ(into.size(), 2u);
  EXPECT_EQ(into[0].faults, 10u);
  EXPECT_EQ(into[0].runs, 3u);
}

TEST(Statistics, ALongSiteIsCutAndStaysTerminated) {
  RegionStatistics region;
  region.set_site(std::string(500, 'x'));
  EXPECT_EQ(std::strlen(region.site), RegionStatistics::kSiteSize - 1);
}

}  // namespace
}  // namespace amasia::base
