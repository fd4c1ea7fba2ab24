// SPDX-License-Identifier: Apache-2.0
// Question: what does a tree that begins on one node, and whose shape nobody can foresee, cost on
// several, against MPI+OpenMP (uts_mpi_openmp, over_ranks.py)? A task visits so many nodes of the
// tree, then leaves what is still on its stack to tasks that any node may do (nodes::async_any):
// some 300 us of work, where a theft costs some 30. Expected: on n nodes with cores of their own
// 1/n of one node's time and some per cent; nodes that share cores cannot be faster than one with
// as many workers. Aim: 1.2 times as fast as MPI+OpenMP.
//
// amasia run -n N uts_nodes [--tree T1|T3|T5] [--rounds R] [--threads W]: times, tree nodes counted
// by each node, and tasks stolen; every count is compared with the published one, a wrong one ends
// with 1.
// uts_nodes --quick: all trees once, without times.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <vector>

#include "../../tasks/harness.hpp"
#include "amasia/nodes.hpp"
#include "setting.hpp"

namespace {

namespace nodes = amasia::nodes;
namespace tasks = amasia::tasks;

constexpr long kVisits = 4096;     // of a task
constexpr std::size_t kMost = 64;  // nodes that a task begins with

// Each node counts on its own; the origin adds up at the end.
std::atomic<long> counted_here{0};

// Travels as bytes.
struct Chunk {
  std::size_t tree = 0;
  std::size_t size = 0;
  std::array<uts::Node, kMost> nodes;
};

void visit(const Chunk& chunk) {
  std::vector<uts::Node> stack;
  stack.reserve(256);
  stack.assign(chunk.nodes.begin(), chunk.nodes.begin() + chunk.size);
  const uts::Shape& shape = uts::kTrees[chunk.tree];
  long visited = 0;
  for (; !stack.empty() && visited < kVisits; ++visited) {
    const uts::Node node = stack.back();
    stack.pop_back();
    const int children = uts::children_of(node, shape);
    for (int n = 0; n < children; ++n) stack.push_back(uts::child_of(node, n));
  }
  counted_here.fetch_add(visited, std::memory_order_relaxed);
  // Old nodes are large subtrees, most often, and new ones small: all pieces get some of each.
  const std::size_t pieces = std::max<std::size_t>(2, (stack.size() + kMost - 1) / kMost);
  for (std::size_t piece = 0; piece < std::min(pieces, stack.size()); ++piece) {
    Chunk rest{chunk.tree, 0, {}};
    for (std::size_t n = piece; n < stack.size(); n += pieces) rest.nodes[rest.size++] = stack[n];
    nodes::async_any([rest] { visit(rest); });
  }
}

void search(std::size_t tree) {
  Chunk all{tree, 1, {}};
  all.nodes[0] = uts::root_of(uts::kTrees[tree]);
  tasks::finish([&] { visit(all); });
}

// Of all nodes: what they have counted since the last time, and stolen ever.
struct Sum {
  long counted = 0;
  long stolen = 0;
  std::vector<long> shares;
};
Sum collect() {
  Sum sum;
  for (unsigned node = 0; node < nodes::count(); ++node) {
    const auto counted =
        nodes::async_future_at(nodes::at(node), [] { return counted_here.exchange(0); });
    const auto stolen = nodes::async_future_at(
        nodes::at(node), [] { return static_cast<long>(nodes::this_node_statistics().stolen); });
    sum.counted += counted.get();
    sum.stolen += stolen.get();
    sum.shares.push_back(counted.get());
  }
  return sum;
}

void measure(const uts::Setting& setting) {
  std::vector<double> times;
  long stolen_before = 0;
  for (int round = 0; round <= setting.rounds; ++round) {  // the first is not counted
    const double took = bench::seconds_of([&] { search(setting.tree); });
    if (round > 0) times.push_back(took);
    const Sum sum = collect();
    uts::expect(sum.counted, setting.shape());
    std::printf("round %d: %.3f s, %ld tasks stolen, counted", round, took,
                sum.stolen - stolen_before);
    for (const long share : sum.shares) std::printf(" %ld", share);
    std::printf("\n");
    stolen_before = sum.stolen;
  }
  std::printf("%s, %u nodes of %d workers: median %.4f s\n", setting.shape().name, nodes::count(),
              setting.threads, bench::median(times));
}

}  // namespace

int main(int argc, char** argv) {
  const uts::Setting setting = uts::setting_of(argc, argv);
  tasks::runtime workers({.workers = static_cast<unsigned>(setting.threads)});
  nodes::library job(workers);
  job.run([&] {
    if (!setting.quick) return measure(setting);
    for (std::size_t tree = 0; tree < std::size(uts::kTrees); ++tree) {
      search(tree);
      uts::expect(collect().counted, uts::kTrees[tree]);
    }
    std::printf("the trees have as many nodes as published\n");
  });
  return 0;
}
