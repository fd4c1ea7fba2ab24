// SPDX-License-Identifier: Apache-2.0
// Question: do nodes that fight over pages all make progress, and how fast?
//
// One thread per node runs the same loop for a while; each counts its operations in buckets of
// 100 ms. Expected: no bucket of any thread is empty (no livelock, nobody starved), and far more
// operations than hand-overs of pages allow, as a node keeps a contended page for a while.
// Peer: the same threads on one node, where the hardware moves cache lines instead of pages.
//
// contention_bench [nodes=2] [milliseconds=1500]; text and JSON lines.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dsm/test_cluster.hpp"
#include "os/os.hpp"

namespace amasia::dsm {
namespace {

using Counter = std::atomic<std::uint64_t>;
constexpr Nanos kBucket = 100 * base::kMillisecond;

// One operation of a thread: `at` gives the address of a byte of shared memory.
using Address = std::function<char*(Bytes offset)>;
using Operation = void (*)(const Address& at, std::minstd_rand& random);

template <unsigned kPages>
void add_to_one_of(const Address& at, std::minstd_rand& random) {
  reinterpret_cast<Counter*>(at(random() % kPages * base::kPageSize))->fetch_add(1);
}

void add_across_two_pages(const Address& at, std::minstd_rand&) {
  __asm__ volatile("lock addq $1, (%0)" : : "r"(at(base::kPageSize - 4)) : "memory");
}

// Test and test-and-set; the lock and what it guards lie on two pages.
void lock_and_add(const Address& at, std::minstd_rand&) {
  auto* const lock = reinterpret_cast<std::atomic<std::uint32_t>*>(at(0));
  for (;;) {
    while (lock->load(std::memory_order_relaxed) != 0) __builtin_ia32_pause();
    if (lock->exchange(1, std::memory_order_acquire) == 0) break;
  }
  auto* const data = reinterpret_cast<volatile std::uint64_t*>(at(base::kPageSize));
  *data = *data + 1;
  lock->store(0, std::memory_order_release);
}

struct Case {
  const char* name;
  Operation operation;
};
constexpr Case kCases[] = {{"atomics on 1 page", add_to_one_of<1>},
                           {"atomics on 4 pages", add_to_one_of<4>},
                           {"atomics on 64 pages", add_to_one_of<64>},
                           {"an instruction over two pages", add_across_two_pages},
                           {"a lock and its data", lock_and_add}};

struct Outcome {
  double per_second = 0;
  std::uint64_t empty_buckets = 0;
  std::uint64_t least_in_bucket = ~0ULL;
};

Outcome run(std::uint32_t threads, Nanos duration, Operation operation,
            const std::function<Address(std::uint32_t)>& address_for) {
  const auto buckets = static_cast<std::size_t>(duration / kBucket);
  std::vector<std::vector<std::uint64_t>> counts(threads, std::vector<std::uint64_t>(buckets, 0));
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  {
    std::vector<std::jthread> workers;
    for (std::uint32_t k = 0; k < threads; ++k) {
      workers.emplace_back([&, k] {
        const Address at = address_for(k);
        std::minstd_rand random(k + 1);
        start.arrive_and_wait();
        const Nanos begin = os::monotonic_now();
        for (;;) {
          for (int i = 0; i < 16; ++i) operation(at, random);
          const auto bucket = static_cast<std::size_t>((os::monotonic_now() - begin) / kBucket);
          if (bucket >= buckets) break;
          counts[k][bucket] += 16;
        }
      });
    }
  }
  Outcome outcome;
  for (const auto& thread : counts) {
    for (const std::uint64_t count : thread) {
      outcome.per_second += static_cast<double>(count);
      outcome.empty_buckets += count == 0 ? 1 : 0;
      outcome.least_in_bucket = std::min(outcome.least_in_bucket, count);
    }
  }
  outcome.per_second /= static_cast<double>(duration) / static_cast<double>(base::kSecond);
  return outcome;
}

void compare(const Case& test, std::uint32_t nodes, Nanos duration) {
  const Outcome peer = [&] {
    TestCluster alone(1);
    return run(nodes, duration, test.operation, [&](std::uint32_t) {
      return Address([&alone](Bytes offset) { return alone.at<char>(0, 0, offset); });
    });
  }();
  TestCluster cluster(nodes);
  const Outcome shared = run(nodes, duration, test.operation, [&](std::uint32_t node) {
    return Address([&cluster, node](Bytes offset) { return cluster.at<char>(node, 0, offset); });
  });
  std::printf(
      "%-32s %10.2f M/s, one node %10.2f M/s, ratio %6.3f, empty buckets %llu, least %llu\n",
      test.name, shared.per_second / 1e6, peer.per_second / 1e6,
      shared.per_second / peer.per_second, static_cast<unsigned long long>(shared.empty_buckets),
      static_cast<unsigned long long>(shared.least_in_bucket));
  std::printf(
      "{\"bench\":\"contention\",\"case\":\"%s\",\"nodes\":%u,\"per_second\":%.0f,"
      "\"peer_per_second\":%.0f,\"empty_buckets\":%llu}\n",
      test.name, nodes, shared.per_second, peer.per_second,
      static_cast<unsigned long long>(shared.empty_buckets));
  for (std::uint32_t k = 0; k < nodes; ++k) {
    const Statistics s = cluster.engine(k).statistics();
    std::printf(
        "  node %u: faults %llu/%llu/%llu, pages in %llu, held %llu, stale %llu, sleeps %llu\n", k,
        static_cast<unsigned long long>(s.faults_read),
        static_cast<unsigned long long>(s.faults_write),
        static_cast<unsigned long long>(s.faults_upgrade),
        static_cast<unsigned long long>(s.pages_in),
        static_cast<unsigned long long>(s.requests_held),
        static_cast<unsigned long long>(s.stale_events), static_cast<unsigned long long>(s.sleeps));
  }
}

}  // namespace
}  // namespace amasia::dsm

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 2;
  const int milliseconds = argc > 2 ? std::atoi(argv[2]) : 1500;
  if (nodes < 2 || nodes > 8 || milliseconds < 100) {
    std::fprintf(stderr, "contention_bench [nodes: 2 to 8] [milliseconds: from 100]\n");
    return 2;
  }
  for (const auto& test : amasia::dsm::kCases) {
    amasia::dsm::compare(test, static_cast<std::uint32_t>(nodes),
                         milliseconds * amasia::base::kMillisecond);
  }
}
