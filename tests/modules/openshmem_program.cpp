// SPDX-License-Identifier: Apache-2.0
// The openshmem module between real PEs. All run the same tests in the same order; run by ranks.py.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "amasia/openshmem.hpp"

namespace amasia {
namespace {

using openshmem::compare;
using openshmem::reduction;

struct Job {
  tasks::runtime workers{{.workers = 2}};
  openshmem::library shmem{workers};
};
Job* job = nullptr;  // main's

class Openshmem : public ::testing::Test {
 protected:
  template <typename T>
  T* symmetric(std::size_t count) {
    blocks.push_back(shmem.allocate(count * sizeof(T)));
    return static_cast<T*>(blocks.back());
  }
  void TearDown() override {
    for (void* block : blocks) shmem.release(block);
  }
  openshmem::library& shmem = job->shmem;
  tasks::runtime& workers = job->workers;
  const int me = shmem.pe(), pes = shmem.pes();
  const int next = (me + 1) % pes, last = (me + pes - 1) % pes;
  std::vector<void*> blocks;
};

TEST_F(Openshmem, PesThatThereAreNotAreRefused) {
  long* const word = symmetric<long>(1);
  workers.run([&] {
    long here = 0;
    for (const int pe : {-1, pes}) {
      EXPECT_THROW(shmem.put(word, &here, sizeof here, pe), std::out_of_range);
      EXPECT_THROW(shmem.get(&here, word, sizeof here, pe), std::out_of_range);
      EXPECT_THROW(shmem.fetch_add(word, 1L, pe), std::out_of_range);
      EXPECT_THROW(shmem.broadcast(word, word, sizeof here, pe), std::out_of_range);
    }
    try {
      shmem.set(word, 1L, pes + 3);
      FAIL();
    } catch (const std::out_of_range& refusal) {
      const std::string all = std::to_string(pes), one = std::to_string(pes + 3);
      EXPECT_EQ(refusal.what(),
                "openshmem: there is no PE " + one + "; there are " + all + ", from 0");
    }
    shmem.barrier().get();
  });
}

TEST_F(Openshmem, PutsAndGets) {
  int* const there = symmetric<int>(1000);
  workers.run([&] {
    std::vector<int> mine(1000), back(1000);
    std::iota(mine.begin(), mine.end(), me * 1000);
    shmem.put(there, mine.data(), 4000, next).get();
    shmem.barrier().get();
    EXPECT_EQ(there[999], last * 1000 + 999);
    shmem.get(back.data(), there, 4000, next).get();
    EXPECT_EQ(back, mine);
    std::atomic<int> wrong{0};
    tasks::forasync(tasks::range<1>{{0}, {500}, {1}}, [&](std::ptrdiff_t n) {
      int value = -1;
      shmem.get(&value, there + n, sizeof value, next).get();
      wrong += value != me * 1000 + n;
    });
    EXPECT_EQ(wrong.load(), 0);
    shmem.barrier().get();
  });
}

TEST_F(Openshmem, AtomicsOfManyTasks) {
  long* const count = symmetric<long>(1);
  unsigned* const word = symmetric<unsigned>(1);
  workers.run([&] {
    tasks::forasync(tasks::range<1>{{0}, {300}, {1}}, [&](std::ptrdiff_t n) {
      shmem.fetch_add(count, static_cast<long>(n), 0).get();
    });
    shmem.add(count, 1L, 0).get();
    shmem.barrier().get();
    EXPECT_EQ(shmem.fetch(count, 0).get(), pes * (299L * 300 / 2 + 1));
    shmem.barrier().get();
    EXPECT_EQ(shmem.swap(word, 5u, next).get(), 0u);
    shmem.barrier().get();
    EXPECT_EQ(shmem.compare_swap(word, 4u, 6u, next).get(), 5u);
    EXPECT_EQ(shmem.compare_swap(word, 5u, 7u, next).get(), 5u);
    shmem.barrier().get();
    EXPECT_EQ(*word, 7u);
    shmem.barrier().get();
    shmem.set(word, 9u, next).get();
    shmem.barrier().get();
    EXPECT_EQ(*word, 9u);
  });
}

// Neighbours in one 8-byte word, each counted up by half of the PEs' tasks.
TEST_F(Openshmem, ComparesAndSwapsWordsOfFourBytes) {
  int* const words = symmetric<int>(2);
  workers.run([&] {
    tasks::forasync(tasks::range<1>{{0}, {100}, {1}}, [&](std::ptrdiff_t n) {
      int* const word = words + n % 2;
      for (int seen = 0;;) {
        const int before = shmem.compare_swap(word, seen, seen - 1, 0).get();
        if (before == seen) break;
        seen = before;
      }
    });
    shmem.barrier().get();
    if (me == 0) {
      EXPECT_EQ(words[0], -50 * pes);
      EXPECT_EQ(words[1], -50 * pes);
    }
    shmem.barrier().get();
  });
}

// A chain over all PEs: each task is begun by what the PE before has put.
TEST_F(Openshmem, TasksRunWhenARemotePutMakesAConditionTrue) {
  long* const token = symmetric<long>(1);
  double* const data = symmetric<double>(64);
  workers.run([&] {
    double sum = -1;
    tasks::finish([&] {
      shmem.async_when(token, compare::greater_or_equal, 1L, [&] {
        sum = std::accumulate(data, data + 64, 0.0);
        if (me == pes - 1) return;
        std::vector<double> mine(64, me + 2.0);
        shmem.put(data, mine.data(), 64 * sizeof(double), next).get();
        shmem.fence();
        shmem.set(token, 1L, next).get();
      });
      if (me == 0) {
        std::fill_n(data, 64, 1.0);
        shmem.set(token, 1L, 0).get();
      }
    });
    EXPECT_EQ(sum, 64.0 * (me + 1));
    shmem.barrier().get();
  });
}

TEST_F(Openshmem, EachComparison) {
  int* const word = symmetric<int>(1);
  workers.run([&] {
    *word = 5;
    shmem.wait_until(word, compare::equal, 5).get();
    shmem.wait_until(word, compare::not_equal, 4).get();
    shmem.wait_until(word, compare::greater, 4).get();
    shmem.wait_until(word, compare::greater_or_equal, 5).get();
    shmem.wait_until(word, compare::less, 6).get();
    shmem.wait_until(word, compare::less_or_equal, 5).get();
    const auto no = shmem.wait_until(word, compare::greater, 5);
    shmem.barrier().get();
    EXPECT_FALSE(no.ready());
    shmem.barrier().get();
    shmem.set(word, 6, next).get();
    no.get();
  });
}

TEST_F(Openshmem, Collectives) {
  const auto all = static_cast<std::size_t>(pes);
  int* const from = symmetric<int>(3 * all);
  int* const to = symmetric<int>(3 * all);
  double* const values = symmetric<double>(3000);
  double* const sums = symmetric<double>(3000);
  workers.run([&] {
    for (int root = 0; root < pes; ++root) {
      from[0] = 100 * me + root;
      shmem.broadcast(to, from, sizeof(int), root).get();
      EXPECT_EQ(to[0], 100 * root + root);
    }
    for (std::size_t n = 0; n < 3 * all; ++n) from[n] = me * 100 + static_cast<int>(n);
    shmem.collect(to, from, 3 * sizeof(int)).get();
    for (int n = 0; n < 3 * pes; ++n) EXPECT_EQ(to[n], n / 3 * 100 + n % 3);
    shmem.alltoall(to, from, 3 * sizeof(int)).get();
    for (int n = 0; n < 3 * pes; ++n) EXPECT_EQ(to[n], n / 3 * 100 + 3 * me + n % 3);
    for (int n = 0; n < 3000; ++n) values[n] = me + n;
    shmem.reduce(reduction::sum, sums, values, 3000).get();
    for (int n = 0; n < 3000; ++n) EXPECT_EQ(sums[n], pes * n + pes * (pes - 1) / 2);
    shmem.reduce(reduction::greatest, sums, values, 3000).get();
    EXPECT_EQ(sums[2999], pes - 1 + 2999);
    shmem.reduce(reduction::least, sums, values, 3000).get();
    EXPECT_EQ(sums[2999], 2999);
    shmem.barrier().get();
  });
}

// A barrier under way does not keep this PE from what another PE needs before it comes to it.
TEST_F(Openshmem, ABarrierBlocksNoWorker) {
  long* const asked = symmetric<long>(1);
  long* const answered = symmetric<long>(1);
  workers.run([&] {
    if (me != 0) {
      shmem.async_when(asked, compare::not_equal, 0L, [&] { shmem.add(answered, 1L, 0); });
    } else {
      for (int pe = 1; pe < pes; ++pe) shmem.set(asked, 1L, pe);
      shmem.wait_until(answered, compare::equal, pes - 1L).get();
    }
    std::vector<tasks::future<void>> barriers;
    for (int n = 0; n < 20; ++n) barriers.push_back(shmem.barrier());
    for (auto& barrier : barriers) barrier.get();
  });
}

}  // namespace
}  // namespace amasia

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  amasia::Job job;
  amasia::job = &job;
  const char* const wanted = std::getenv("RANKS_EXPECTED");
  if (wanted != nullptr && std::atoi(wanted) != job.shmem.pes()) return 3;
  return RUN_ALL_TESTS();
}
