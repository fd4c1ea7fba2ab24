// SPDX-License-Identifier: Apache-2.0
// Question: what does a tree that begins on one node, and whose shape nobody can foresee, cost on
// several? Subtrees high up in the tree are tasks that any node may do (nodes::async_any), those
// below serial: a task of this height has some 100 us of work, and a theft costs some 30. Expected:
// on n nodes with cores of their own 1/n of one node's time and some per cent; nodes that share
// cores cannot be faster than one with as many workers.
//
// amasia run -n N uts_nodes [rounds [workers on each node]]: times of T1, nodes counted and tasks
// stolen; every count is compared with the published one, a wrong one ends with 1.
// uts_nodes --quick: one round, without times.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../tasks/harness.hpp"
#include "amasia/nodes.hpp"
#include "tree.hpp"

namespace {

namespace nodes = amasia::nodes;
namespace tasks = amasia::tasks;

constexpr int kSerialFrom = 6;  // height of those that are counted serially; the tree has 10

// Each node counts on its own; the origin adds up at the end.
std::atomic<long> counted_here{0};

void visit(const uts::Node& node) {
  if (node.height >= kSerialFrom) {
    counted_here.fetch_add(uts::count_serially(node, uts::kT1), std::memory_order_relaxed);
    return;
  }
  counted_here.fetch_add(1, std::memory_order_relaxed);
  const int children = uts::children_of(node, uts::kT1);
  for (int n = 0; n < children; ++n) {
    nodes::async_any([child = uts::child_of(node, n)] { visit(child); });
  }
}

// Of all nodes: what they have counted since the last time, and stolen.
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

void expect(long got) {
  if (got == uts::kT1.nodes) return;
  std::fprintf(stderr, "%ld nodes of the tree instead of %ld\n", got, uts::kT1.nodes);
  std::exit(1);
}

void measure(int rounds, unsigned workers) {
  std::vector<double> times;
  std::vector<double> serial;
  long stolen_before = 0;
  for (int round = 0; round < rounds; ++round) {
    serial.push_back(
        bench::seconds_of([] { expect(uts::count_serially(uts::root_of(uts::kT1), uts::kT1)); }));
    times.push_back(
        bench::seconds_of([] { tasks::finish([] { visit(uts::root_of(uts::kT1)); }); }));
    const Sum sum = collect();
    expect(sum.counted);
    std::printf("round %d: %.3f s, serially %.3f s, %ld tasks stolen, counted", round + 1,
                times.back(), serial.back(), sum.stolen - stolen_before);
    for (const long share : sum.shares) std::printf(" %ld", share);
    std::printf("\n");
    stolen_before = sum.stolen;
  }
  std::printf("%u nodes of %u workers: median %.3f s, %.2f times the serial program's speed\n",
              nodes::count(), workers, bench::median(times),
              bench::median(serial) / bench::median(times));
}

}  // namespace

int main(int count, char** words) {
  const std::string word = count > 1 ? words[1] : "7";
  const auto each = static_cast<unsigned>(count > 2 ? std::max(1, std::atoi(words[2])) : 1);
  tasks::runtime workers({.workers = each});
  nodes::library job(workers);
  job.run([&] {
    if (word != "--quick") return measure(std::max(1, std::atoi(word.c_str())), each);
    tasks::finish([] { visit(uts::root_of(uts::kT1)); });
    const Sum sum = collect();
    expect(sum.counted);
    std::printf("%ld nodes\n", sum.counted);
  });
  return 0;
}
