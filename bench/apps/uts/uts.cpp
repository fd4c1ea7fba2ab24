// SPDX-License-Identifier: Apache-2.0
// Question: what does a tree whose shape nobody can foresee cost as tasks, one a node, against the
// same with oneTBB and OpenMP, and against the serial program? A node is one SHA-1, some 150 ns, so
// tasks of 20 ns cost a tenth; aim: level with the serial program on one worker to within that.
//
// uts [rounds]. Every count is compared with the published one; a wrong one ends with 1.
// uts --quick: checks SHA-1 and the tree's size by tasks, without measuring.
#include <omp.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "../../tasks/harness.hpp"
#include "amasia/tasks.hpp"
#include "tree.hpp"

namespace {

namespace tasks = amasia::tasks;

// On a line of its own: every task adds to it.
struct alignas(64) Count {
  std::atomic<long> nodes{0};
};

void visit_amasia(const uts::Node& node, const uts::Shape& shape, Count& count) {
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) {
    tasks::async(
        [child = uts::child_of(node, n), &shape, &count] { visit_amasia(child, shape, count); });
  }
  count.nodes.fetch_add(1, std::memory_order_relaxed);
}

void visit_tbb(tbb::task_group& group, const uts::Node& node, const uts::Shape& shape,
               Count& count) {
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) {
    group.run([child = uts::child_of(node, n), &group, &shape, &count] {
      visit_tbb(group, child, shape, count);
    });
  }
  count.nodes.fetch_add(1, std::memory_order_relaxed);
}

void visit_openmp(const uts::Node& node, const uts::Shape& shape, Count& count) {
  const int children = uts::children_of(node, shape);
  for (int n = 0; n < children; ++n) {
    const uts::Node child = uts::child_of(node, n);
#pragma omp task firstprivate(child) shared(shape, count)
    visit_openmp(child, shape, count);
  }
  count.nodes.fetch_add(1, std::memory_order_relaxed);
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
  if (uts::sha1(abc.data(), abc.size()) == kWanted) return;
  std::fprintf(stderr, "SHA-1 of 'abc' is wrong\n");
  std::exit(1);
}

void count_amasia(tasks::runtime& workers, const uts::Shape& shape) {
  Count count;
  workers.run([&] { visit_amasia(uts::root_of(shape), shape, count); });
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
  bench::compare("uts T1", workers, static_cast<double>(shape.nodes), "node",
                 {{"amasia", [&] { count_amasia(amasia, shape); }},
                  {"oneTBB", with_tbb},
                  {"OpenMP", with_openmp},
                  {"serial", serial}},
                 rounds);
}

}  // namespace

int main(int count, char** words) {
  check_sha1();
  const std::string word = count > 1 ? words[1] : "7";
  if (word == "--quick") {
    tasks::runtime workers({.workers = 2});
    count_amasia(workers, uts::kT1);
    std::printf("%ld nodes\n", uts::kT1.nodes);
    return 0;
  }
  const int rounds = std::max(1, std::atoi(word.c_str()));
  for (const unsigned workers : {1u, 2u}) measure(workers, uts::kT1, rounds);
  return 0;
}
