// SPDX-License-Identifier: Apache-2.0
#include "machine/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace amasia::machine {
namespace {

// Two NUMA nodes of two cores; each core with an L1, each node with an L2.
Topology two_nodes() {
  Topology made{.memory_bytes = 2048, .cores = 4};
  for (std::uint32_t core = 0; core < 4; ++core) {
    made.shared.push_back({"L1#" + std::to_string(core), PlaceType::kCache, 0, 32, 1, {core}});
  }
  for (std::uint32_t node = 0; node < 2; ++node) {
    const std::vector<std::uint32_t> cores = {2 * node, 2 * node + 1};
    const int number = static_cast<int>(node);
    made.shared.push_back({"numa" + std::to_string(node), PlaceType::kNumaNode, number, 0, 0,
                           cores});
    made.shared.push_back({"L2#" + std::to_string(node), PlaceType::kCache, 0, 64, 2, cores});
  }
  made.gpus.push_back({.name = "gpu0", .type = PlaceType::kGpu, .number = 0});
  return made;
}

std::string names(const Platform& platform, const std::vector<std::uint32_t>& path) {
  std::string text;
  for (const std::uint32_t place : path) text += platform.places[place].name + " ";
  return text;
}

TEST(Topology, PathsLeadOutwardsAndThenToTheOthers) {
  const Platform made = platform_of(two_nodes());
  EXPECT_EQ(flaw_of(made), "");
  ASSERT_EQ(made.workers.size(), 4u);
  EXPECT_EQ(names(made, made.workers[0].pop), "interconnect storage L1#0 L2#0 numa0 memory gpu0 ");
  EXPECT_EQ(names(made, made.workers[3].pop), "L1#3 L2#1 numa1 memory gpu0 ");
  EXPECT_EQ(names(made, made.workers[3].steal), "L1#3 L2#1 numa1 memory L2#0 gpu0 ");
  EXPECT_EQ(made.places[made.workers[1].home].name, "L2#0");
  std::set<std::string> edges;
  for (const auto& [one, other] : made.edges) edges.insert(names(made, {one, other}));
  EXPECT_EQ(edges, (std::set<std::string>{"memory numa0 ", "memory numa1 ", "numa0 L2#0 ",
                                          "numa1 L2#1 ", "L2#0 L1#0 ", "L2#0 L1#1 ", "L2#1 L1#2 ",
                                          "L2#1 L1#3 ", "memory gpu0 ", "memory interconnect ",
                                          "memory storage "}));
}

TEST(Topology, OneNumaNodeIsTheMemory) {
  Topology plain{.memory_bytes = 5, .cores = 2};
  plain.shared.push_back({"numa0", PlaceType::kNumaNode, 0, 5, 0, {0, 1}});
  const Platform made = platform_of(plain);
  EXPECT_EQ(made.places.size(), 3u);
  EXPECT_EQ(names(made, made.workers[1].steal), "memory ");
  EXPECT_EQ(platform_of(Topology{}).workers.size(), 1u);
}

// Of any machine: the platform has no flaw, comes back from its file, and whatever is put at a
// place is looked for by somebody; what goes to a home, by everybody.
TEST(Topology, AnyMachineGivesAPlatformThatServesAllItsPlaces) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    Topology any{.memory_bytes = random(),
                 .cores = 1 + static_cast<std::uint32_t>(random() % 12)};
    for (unsigned n = random() % 20; n > 0; --n) {
      SharedMemory shared{.name = "s" + std::to_string(n),
                          .type = random() % 3 == 0 ? PlaceType::kNumaNode : PlaceType::kCache,
                          .level = 1 + static_cast<int>(random() % 3)};
      for (std::uint32_t core = 0; core < any.cores; ++core) {
        if (random() % 2 == 0) shared.cores.push_back(core);
      }
      any.shared.push_back(shared);
    }
    const Platform made = platform_of(any);
    ASSERT_EQ(flaw_of(made), "") << "seed " << seed;
    const auto again = parse_platform(to_json(made));
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(again.value(), made);
    const auto steals = [&](const PlatformWorker& worker, std::uint32_t place) {
      return std::find(worker.steal.begin(), worker.steal.end(), place) != worker.steal.end();
    };
    for (std::uint32_t place = 0; place < made.places.size(); ++place) {
      ASSERT_TRUE(std::any_of(made.workers.begin(), made.workers.end(),
                              [&](const auto& worker) { return steals(worker, place); }))
          << made.places[place].name << " seed " << seed;
    }
    for (const PlatformWorker& one : made.workers) {
      for (const PlatformWorker& other : made.workers) ASSERT_TRUE(steals(one, other.home));
    }
    ASSERT_TRUE(drawing_of(made).ends_with("</svg>\n"));
  }
}

TEST(Topology, TheDrawingNamesEverything) {
  Topology machine = two_nodes();
  machine.gpus[0].name = "<gpu & \"0\">";
  const std::string svg = drawing_of(platform_of(machine));
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  for (const char* wanted : {">L1#3</text>", ">numa1</text>", "&lt;gpu &amp; &quot;0&quot;&gt;",
                             "worker 3 at L2#1   pops: L1#3, L2#1, numa1, memory, "}) {
    EXPECT_NE(svg.find(wanted), std::string::npos) << wanted;
  }
  EXPECT_EQ(svg.find("<gpu"), std::string::npos);
}

}  // namespace
}  // namespace amasia::machine
