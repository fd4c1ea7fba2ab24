// SPDX-License-Identifier: Apache-2.0
// Integer sort in the manner of ISx (Hanebutte and Hemstad, PGAS 2015): each rank has uniform keys;
// keys go to the rank whose range they are in (alltoallv), which counts them. A rank's range has
// parts, so that several threads can count without meeting; half as many keys as there may be.
//
//   tasks    keys in blocks: blocks are put in order as tasks, and a block's exchange goes on while
//            the next is prepared and the one before is counted
//   openmp   MPI+OpenMP: threads put all keys in order, one MPI_Alltoallv, threads count
//   plain    the same in one thread, as the reference of ISx does
//
// Verified: every rank's keys are in its range; their number and their sum, over all ranks, are
// those of the keys that were made; and each rank's counts are those of what it received.
// Run: mpirun -np N isx_sort [--quick] [--keys K] [--threads W] [--rounds R]
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../../tasks/harness.hpp"
#include "amasia/mpi.hpp"

namespace mpi = amasia::mpi;
namespace tasks = amasia::tasks;

namespace {

using Key = std::uint32_t;
constexpr std::size_t kBlocks = 8;

std::vector<Key> make_keys(std::size_t count, Key range, int rank) {
  std::vector<Key> keys(count);
  std::uint64_t state = 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(rank + 1);
  for (Key& key : keys) {  // splitmix64
    std::uint64_t mixed = state += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    key = static_cast<Key>((mixed ^ (mixed >> 31)) % range);
  }
  return keys;
}

// Whose a key is: buckets are all ranks' parts, in order.
struct Ranks {
  int rank, ranks;
  std::size_t parts;  // of each rank
  Key range;          // of all keys
  std::size_t buckets() const { return static_cast<std::size_t>(ranks) * parts; }
  Key part_width() const { return range / static_cast<Key>(buckets()) + 1; }
  std::size_t width() const { return part_width() * parts; }  // of a rank
  std::size_t bucket(Key key) const { return key / part_width(); }
  Key first() const { return static_cast<Key>(width()) * static_cast<Key>(rank); }
};

// How often each key of this rank's range was received. Part by part it is made and counted.
struct Counts {
  explicit Counts(const Ranks& of)
      : size(of.width()), each(std::make_unique_for_overwrite<std::uint32_t[]>(size)) {}
  std::size_t size;
  std::unique_ptr<std::uint32_t[]> each;
  bool operator==(const Counts& other) const {
    return size == other.size && std::equal(&each[0], &each[size], &other.each[0]);
  }
};
void clear_part(Counts& counts, std::size_t part, const Ranks& of) {
  std::fill_n(&counts.each[part * of.part_width()], of.part_width(), 0);
}

// Some keys on their way: in order of their buckets, then what came for this rank.
struct Block {
  std::vector<Key> out, in;
  std::vector<int> out_counts, in_counts;  // of buckets; by rank, then part
  std::vector<int> to_counts, to_offsets, from_counts, from_offsets;  // by rank

  Block(std::size_t count, const Ranks& of)
      : out(count),
        out_counts(of.buckets()),
        in_counts(of.buckets()),
        to_counts(static_cast<std::size_t>(of.ranks)),
        to_offsets(to_counts.size()),
        from_counts(to_counts.size()),
        from_offsets(to_counts.size()) {}

  // The three that take the time are the same machine code for all ways.

  // By one thread.
  void arrange(const Key* keys, const Ranks& of) {
    count(keys, out.size(), of, out_counts);
    std::vector<int> at(out_counts.size());
    std::exclusive_scan(out_counts.begin(), out_counts.end(), at.begin(), 0);
    place(keys, out.size(), of, at);
  }
  [[gnu::noinline]] static void count(const Key* keys, std::size_t size, const Ranks& of,
                                      std::vector<int>& counts) {
    for (std::size_t n = 0; n < size; ++n) ++counts[of.bucket(keys[n])];
  }
  [[gnu::noinline]] void place(const Key* keys, std::size_t size, const Ranks& of,
                               std::vector<int>& at) {
    for (std::size_t n = 0; n < size; ++n) {
      out[static_cast<std::size_t>(at[of.bucket(keys[n])]++)] = keys[n];
    }
  }
  // Once the counts are exchanged.
  void make_room(const Ranks& of) {
    for (std::size_t rank = 0; rank < to_counts.size(); ++rank) {
      for (std::size_t part = 0; part < of.parts; ++part) {
        to_counts[rank] += out_counts[rank * of.parts + part];
        from_counts[rank] += in_counts[rank * of.parts + part];
      }
    }
    std::exclusive_scan(to_counts.begin(), to_counts.end(), to_offsets.begin(), 0);
    std::exclusive_scan(from_counts.begin(), from_counts.end(), from_offsets.begin(), 0);
    in.resize(static_cast<std::size_t>(from_offsets.back() + from_counts.back()));
  }
  [[gnu::noinline]] void count_part(std::size_t part, Counts& counts, const Ranks& of) const {
    const Key first = of.first() + static_cast<Key>(part) * of.part_width();
    std::uint32_t* const each = &counts.each[first - of.first()];
    std::size_t at = 0;
    for (std::size_t bucket = 0; bucket < in_counts.size(); ++bucket) {
      const std::size_t end = at + static_cast<std::size_t>(in_counts[bucket]);
      if (bucket % of.parts == part) {
        for (std::size_t n = at; n < end; ++n) {
          const Key place = in[n] - first;
          // Seen by the verification: a key of another part's.
          ++each[place < of.part_width() ? place : 0];
        }
      }
      at = end;
    }
  }
};

Counts with_tasks(mpi::library& mpi, const std::vector<Key>& keys, const Ranks& of) {
  Counts counts(of);
  std::vector<std::unique_ptr<Block>> blocks(kBlocks);
  std::vector<tasks::future<void>> made;
  for (std::size_t n = 0; n < kBlocks; ++n) {
    const std::size_t low = keys.size() * n / kBlocks, high = keys.size() * (n + 1) / kBlocks;
    made.push_back(tasks::async_future([&, n, low, high] {
      blocks[n] = std::make_unique<Block>(high - low, of);
      blocks[n]->arrange(keys.data() + low, of);
    }));
  }
  std::vector<tasks::future<void>> counted;  // of each part: the blocks before
  for (std::size_t part = 0; part < of.parts; ++part) {
    counted.push_back(tasks::async_future([&, part] { clear_part(counts, part, of); }));
  }
  // Collectives in the same order on all ranks: one task begins them.
  for (std::size_t n = 0; n < kBlocks; ++n) {
    made[n].get();
    Block& block = *blocks[n];
    const int parts = static_cast<int>(of.parts);
    mpi.alltoall(block.out_counts.data(), parts, MPI_INT, block.in_counts.data(), parts, MPI_INT);
    block.make_room(of);
    const auto here = mpi.ialltoallv(
        block.out.data(), block.to_counts.data(), block.to_offsets.data(), MPI_UINT32_T,
        block.in.data(), block.from_counts.data(), block.from_offsets.data(), MPI_UINT32_T);
    for (std::size_t part = 0; part < of.parts; ++part) {
      const auto count = [&counts, &of, &block, part, here] {
        here.get();
        block.count_part(part, counts, of);
      };
      counted[part] = tasks::async_await_future(count, here, counted[part]);
    }
  }
  for (const auto& one : counted) one.get();
  return counts;
}

void exchange(Block& block, const Ranks& of) {
  const int parts = static_cast<int>(of.parts);
  MPI_Alltoall(block.out_counts.data(), parts, MPI_INT, block.in_counts.data(), parts, MPI_INT,
               MPI_COMM_WORLD);
  block.make_room(of);
  MPI_Alltoallv(block.out.data(), block.to_counts.data(), block.to_offsets.data(), MPI_UINT32_T,
                block.in.data(), block.from_counts.data(), block.from_offsets.data(), MPI_UINT32_T,
                MPI_COMM_WORLD);
}

Counts plain(const std::vector<Key>& keys, const Ranks& of) {
  Block block(keys.size(), of);
  block.arrange(keys.data(), of);
  exchange(block, of);
  Counts counts(of);
  for (std::size_t part = 0; part < of.parts; ++part) {
    clear_part(counts, part, of);
    block.count_part(part, counts, of);
  }
  return counts;
}

// Each thread's share of a bucket follows those of the threads before.
Counts with_openmp(const std::vector<Key>& keys, const Ranks& of, int threads) {
  Block block(keys.size(), of);
  std::vector<std::vector<int>> at(static_cast<std::size_t>(threads));
#pragma omp parallel num_threads(threads)
  {
    const auto self = static_cast<std::size_t>(omp_get_thread_num()), all = at.size();
    const std::size_t low = keys.size() * self / all, high = keys.size() * (self + 1) / all;
    at[self].resize(of.buckets());
    Block::count(keys.data() + low, high - low, of, at[self]);
#pragma omp barrier
#pragma omp single
    {
      int next = 0;
      for (std::size_t bucket = 0; bucket < of.buckets(); ++bucket) {
        for (std::vector<int>& of_thread : at) {
          block.out_counts[bucket] += of_thread[bucket];
          next += std::exchange(of_thread[bucket], next);
        }
      }
    }
    block.place(keys.data() + low, high - low, of, at[self]);
  }
  exchange(block, of);
  Counts counts(of);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (std::size_t part = 0; part < of.parts; ++part) {
    clear_part(counts, part, of);
    block.count_part(part, counts, of);
  }
  return counts;
}

// Number and sum of all keys, before and after.
bool is_sorted_whole(const std::vector<Key>& keys, const Counts& counts, const Ranks& of) {
  std::uint64_t sums[4] = {keys.size(), 0, 0, 0}, all[4];
  for (const Key key : keys) sums[1] += key;
  for (std::size_t n = 0; n < counts.size; ++n) {
    sums[2] += counts.each[n];
    sums[3] += std::uint64_t{counts.each[n]} * (of.first() + n);
  }
  MPI_Allreduce(sums, all, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all[0] == all[2] && all[1] == all[3];
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 4'000'000;
  unsigned threads = 2;
  int rounds = 5;
  for (int n = 1; n < argc; ++n) {
    const auto next = [&] { return n + 1 < argc ? std::atoi(argv[++n]) : 0; };
    if (std::strcmp(argv[n], "--quick") == 0) count = 50'021, rounds = 1;
    if (std::strcmp(argv[n], "--keys") == 0) count = static_cast<std::size_t>(next());
    if (std::strcmp(argv[n], "--threads") == 0) threads = static_cast<unsigned>(next());
    if (std::strcmp(argv[n], "--rounds") == 0) rounds = next();
  }
  tasks::runtime workers({.workers = threads});
  mpi::library mpi(workers, &argc, &argv);
  const auto range = static_cast<Key>(2 * count * static_cast<std::size_t>(mpi.size()));
  const Ranks of{mpi.rank(), mpi.size(), threads, range};
  if (of.rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 2;
  const std::vector<Key> keys = make_keys(count, range, of.rank);
  std::optional<Counts> by_tasks, by_openmp, by_plain;
  const int omp_threads = static_cast<int>(threads);
  bench::compare(
      "isx sort", threads, static_cast<double>(count), "key",
      {{"amasia", [&] { by_tasks = workers.run([&] { return with_tasks(mpi, keys, of); }); }},
       {"openmp", [&] { by_openmp = with_openmp(keys, of, omp_threads); }},
       {"plain", [&] { by_plain = plain(keys, of); }}},
      rounds);
  int right =
      is_sorted_whole(keys, *by_tasks, of) && *by_tasks == *by_plain && *by_openmp == *by_plain;
  int all_right = 0;
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  std::printf("%s\n", all_right != 0 ? "verified" : "WRONG");
  return all_right != 0 ? 0 : 1;
}
