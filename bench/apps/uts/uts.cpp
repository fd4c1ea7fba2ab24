// SPDX-License-Identifier: Apache-2.0
// Question: what does a tree whose shape nobody can foresee cost as tasks, against the same with
// oneTBB and OpenMP, and against the serial program? A node is one SHA-1, some 65 ns by the
// processor's instructions and 300 without them. On two cores nobody beats half the serial time.
//
//   amasia          a node's children are a loop, divided only where somebody has nothing to do
//   tasks           a task each, as with oneTBB and OpenMP
//
// Nodes are counted by their parents, in all ways: cores would fight for a count that each adds to.
// uts [rounds]. Every count is compared with the published one; a wrong one ends with 1.
// uts --shares: how even the tree's shares would be if ranks divided it once.
// uts --quick: checks SHA-1 and the tree's size by tasks and by loops, without measuring.
#include <omp.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "../../tasks/harness.hpp"
#include "amasia/tasks.hpp"
#include "tree.hpp"

namespace {

namespace tasks = amasia::tasks;

// On a line of its own; the root is counted.
struct alignas(64) Count {
  std::atomic<long> nodes{1};
  void add(int children) {
    if (children > 0) nodes.fetch_add(children, std::memory_order_relaxed);
  }
};

void visit_by_loops(const uts::Node& node, const uts::Shape& shape, Count& count) {
  const int children = uts::children_of(node, shape);
  count.add(children);
  if (children == 0) return;
  tasks::forasync(tasks::range<1>{{0}, {children}, {1}}, [&](std::ptrdiff_t n) {
    visit_by_loops(uts::child_of(node, static_cast<int>(n)), shape, count);
  });
}

void visit_by_tasks(const uts::Node& node, const uts::Shape& shape, Count& count) {
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) {
    tasks::async(
        [child = uts::child_of(node, n), &shape, &count] { visit_by_tasks(child, shape, count); });
  }
  count.add(children);
}

void visit_tbb(tbb::task_group& group, const uts::Node& node, const uts::Shape& shape,
               Count& count) {
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) {
    group.run([child = uts::child_of(node, n), &group, &shape, &count] {
      visit_tbb(group, child, shape, count);
    });
  }
  count.add(children);
}

void visit_openmp(const uts::Node& node, const uts::Shape& shape, Count& count) {
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) {
    const uts::Node child = uts::child_of(node, n);
#pragma omp task firstprivate(child) shared(shape, count)
    visit_openmp(child, shape, count);
  }
  count.add(children);
}

void expect(long got, const uts::Shape& shape, const char* who) {
  if (got == shape.nodes) return;
  std::fprintf(stderr, "%s: %ld nodes instead of %ld\n", who, got, shape.nodes);
  std::exit(1);
}

void check_sha1() {
  // FIPS 180's example.
  constexpr uts::Digest kWanted = {0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e,
                                   0x25, 0x71, 0x78, 0x50, 0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d};
  const std::array<std::uint8_t, 3> abc = {'a', 'b', 'c'};
  bool right = uts::sha1_in_software(abc.data(), abc.size()) == kWanted;
  if (uts::has_sha_instructions()) {
    right = right && uts::sha1_by_instructions(abc.data(), abc.size()) == kWanted;
  }
  if (right) return;
  std::fprintf(stderr, "SHA-1 of 'abc' is wrong\n");
  std::exit(1);
}

template <typename Visit>
void count_amasia(tasks::runtime& workers, const uts::Shape& shape, Visit visit) {
  Count count;
  workers.run([&] { visit(uts::root_of(shape), shape, count); });
  expect(count.nodes.load(), shape, "amasia");
}

void measure(unsigned workers, const uts::Shape& shape, int rounds) {
  tasks::runtime amasia({.workers = workers});
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena(static_cast<int>(workers));
  const auto with_tbb = [&] {
    Count count;
    arena.execute([&] {
      tbb::task_group group;
      visit_tbb(group, uts::root_of(shape), shape, count);
      group.wait();
    });
    expect(count.nodes.load(), shape, "oneTBB");
  };
  const auto with_openmp = [&] {
    Count count;
#pragma omp parallel num_threads(workers)
#pragma omp single
    visit_openmp(uts::root_of(shape), shape, count);
    expect(count.nodes.load(), shape, "OpenMP");
  };
  const auto serial = [&] {
    expect(uts::count_serially(uts::root_of(shape), shape), shape, "serial");
  };
  bench::compare(uts::by_instructions ? "uts T1" : "uts T1, plain SHA-1", workers,
                 static_cast<double>(shape.nodes), "node",
                 {{"amasia", [&] { count_amasia(amasia, shape, visit_by_loops); }},
                  {"tasks", [&] { count_amasia(amasia, shape, visit_by_tasks); }},
                  {"oneTBB", with_tbb},
                  {"OpenMP", with_openmp},
                  {"serial", serial}},
                 rounds);
}

// Subtrees of one height below `node`, in order, and how many nodes each has.
void collect(const uts::Node& node, const uts::Shape& shape, int height, std::vector<long>& sizes) {
  if (node.height == height) return sizes.push_back(uts::count_serially(node, shape));
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) collect(uts::child_of(node, n), shape, height, sizes);
}

// What ranks that divide the subtrees of a height among them, once, would be worse than balance.
void print_shares(const uts::Shape& shape) {
  for (int height = 1; height <= 6; ++height) {
    std::vector<long> sizes;
    collect(uts::root_of(shape), shape, height, sizes);
    std::printf("height %d, %zu subtrees; largest share by the mean, in blocks and in turns:",
                height, sizes.size());
    for (const std::size_t ranks : {2u, 4u, 8u}) {
      std::vector<long> blocks(ranks), turns(ranks);
      for (std::size_t n = 0; n < sizes.size(); ++n) {
        blocks[n * ranks / sizes.size()] += sizes[n];
        turns[n % ranks] += sizes[n];
      }
      const double mean = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), 0L)) /
                          static_cast<double>(ranks);
      const auto largest = [&](const std::vector<long>& shares) {
        return static_cast<double>(*std::max_element(shares.begin(), shares.end())) / mean;
      };
      std::printf("  %zu ranks %.2f %.2f", ranks, largest(blocks), largest(turns));
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int count, char** words) {
  check_sha1();
  const std::string word = count > 1 ? words[1] : "7";
  if (word == "--shares") {
    print_shares(uts::kT1);
    return 0;
  }
  if (word == "--quick") {
    tasks::runtime workers({.workers = 2});
    count_amasia(workers, uts::kT1, visit_by_loops);
    count_amasia(workers, uts::kT1, visit_by_tasks);
    std::printf("%ld nodes\n", uts::kT1.nodes);
    return 0;
  }
  const int rounds = std::max(1, std::atoi(word.c_str()));
  for (const unsigned workers : {1u, 2u}) measure(workers, uts::kT1, rounds);
  if (!uts::by_instructions) return 0;
  uts::by_instructions = false;
  for (const unsigned workers : {1u, 2u}) measure(workers, uts::kT1, rounds);
  return 0;
}
