// SPDX-License-Identifier: Apache-2.0
// Integer sort in the manner of ISx (Hanebutte and Hemstad, PGAS 2015): each rank has uniform keys;
// keys go to the rank whose range they are in (alltoallv), which counts them.
//
//   tasks    keys in blocks: blocks are counted and put in order as tasks, and a block's
//            exchange goes on while the next is prepared
//   plain    one MPI_Alltoallv of all keys, in one thread, as the reference of ISx does
//
// Verified: every rank's keys are in its range; their number and their sum, over all ranks, are
// those of the keys that were made; and each rank's counts are those of what it received.
// Run: mpirun -np N isx_sort [--quick] [--keys K] [--threads W] [--rounds R]
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
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

struct Ranks {
  int rank, ranks;
  Key range;  // of all keys
  Key width() const { return (range + static_cast<Key>(ranks) - 1) / static_cast<Key>(ranks); }
  std::size_t owner(Key key) const { return key / width(); }
  Key first() const { return width() * static_cast<Key>(rank); }
};

// Some keys on their way: in order of their owners, then what came for this rank.
struct Block {
  std::vector<Key> out, in;
  std::vector<int> out_counts, out_offsets, in_counts, in_offsets;

  Block(const Key* keys, std::size_t count, const Ranks& to)
      : out(count),
        out_counts(static_cast<std::size_t>(to.ranks)),
        out_offsets(out_counts.size()),
        in_counts(out_counts.size()),
        in_offsets(out_counts.size()) {
    for (std::size_t n = 0; n < count; ++n) ++out_counts[to.owner(keys[n])];
    std::exclusive_scan(out_counts.begin(), out_counts.end(), out_offsets.begin(), 0);
    std::vector<int> at = out_offsets;
    for (std::size_t n = 0; n < count; ++n) {
      out[static_cast<std::size_t>(at[to.owner(keys[n])]++)] = keys[n];
    }
  }
  void make_room() {
    std::exclusive_scan(in_counts.begin(), in_counts.end(), in_offsets.begin(), 0);
    in.resize(static_cast<std::size_t>(in_offsets.back() + in_counts.back()));
  }
};

// How often each key of this rank's range was received.
using Counts = std::vector<std::uint32_t>;

void count_keys(Counts& counts, const std::vector<Key>& keys, Key first) {
  for (const Key key : keys) {
    if (key - first >= counts.size()) {
      counts[0] += 1u << 30;  // seen by the verification: a key of another rank's
    } else {
      ++counts[key - first];
    }
  }
}

Counts with_tasks(mpi::library& mpi, const std::vector<Key>& keys, const Ranks& of) {
  Counts counts(of.width());
  std::vector<std::unique_ptr<Block>> blocks(kBlocks);
  std::vector<tasks::future<void>> made;
  for (std::size_t n = 0; n < kBlocks; ++n) {
    const std::size_t low = keys.size() * n / kBlocks, high = keys.size() * (n + 1) / kBlocks;
    made.push_back(tasks::async_future([&, n, low, high] {
      blocks[n] = std::make_unique<Block>(keys.data() + low, high - low, of);
    }));
  }
  // Collectives in the same order on all ranks: one task begins them.
  tasks::future<void> counted;
  for (std::size_t n = 0; n < kBlocks; ++n) {
    made[n].get();
    Block& block = *blocks[n];
    mpi.alltoall(block.out_counts.data(), 1, MPI_INT, block.in_counts.data(), 1, MPI_INT);
    block.make_room();
    const auto here = mpi.ialltoallv(block.out.data(), block.out_counts.data(),
                                     block.out_offsets.data(), MPI_UINT32_T, block.in.data(),
                                     block.in_counts.data(), block.in_offsets.data(),
                                     MPI_UINT32_T);
    const auto count = [&, n, here] {
      here.get();
      count_keys(counts, blocks[n]->in, of.first());
      blocks[n].reset();
    };
    counted = counted.valid() ? tasks::async_await_future(count, here, counted)
                              : tasks::async_await_future(count, here);
  }
  counted.get();
  return counts;
}

Counts plain(const std::vector<Key>& keys, const Ranks& of) {
  Block block(keys.data(), keys.size(), of);
  MPI_Alltoall(block.out_counts.data(), 1, MPI_INT, block.in_counts.data(), 1, MPI_INT,
               MPI_COMM_WORLD);
  block.make_room();
  MPI_Alltoallv(block.out.data(), block.out_counts.data(), block.out_offsets.data(), MPI_UINT32_T,
                block.in.data(), block.in_counts.data(), block.in_offsets.data(), MPI_UINT32_T,
                MPI_COMM_WORLD);
  Counts counts(of.width());
  count_keys(counts, block.in, of.first());
  return counts;
}

// Number and sum of all keys, before and after.
bool is_sorted_whole(const std::vector<Key>& keys, const Counts& counts, const Ranks& of) {
  std::uint64_t sums[4] = {keys.size(), 0, 0, 0}, all[4];
  for (const Key key : keys) sums[1] += key;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    sums[2] += counts[n];
    sums[3] += std::uint64_t{counts[n]} * (of.first() + n);
  }
  MPI_Allreduce(sums, all, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all[0] == all[2] && all[1] == all[3];
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 4'000'000;
  Key range = 1u << 27;  // that of ISx
  unsigned threads = 2;
  int rounds = 5;
  for (int n = 1; n < argc; ++n) {
    const auto next = [&] { return n + 1 < argc ? std::atoi(argv[++n]) : 0; };
    if (std::strcmp(argv[n], "--quick") == 0) count = 50'021, range = 1 << 18, rounds = 1;
    if (std::strcmp(argv[n], "--keys") == 0) count = static_cast<std::size_t>(next());
    if (std::strcmp(argv[n], "--threads") == 0) threads = static_cast<unsigned>(next());
    if (std::strcmp(argv[n], "--rounds") == 0) rounds = next();
  }
  tasks::runtime workers({.workers = threads});
  mpi::library mpi(workers, &argc, &argv);
  const Ranks of{mpi.rank(), mpi.size(), range};
  if (of.rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 2;
  const std::vector<Key> keys = make_keys(count, range, of.rank);
  Counts by_tasks, by_plain;
  bench::compare("isx sort", threads, static_cast<double>(count), "key",
                 {{"amasia",
                   [&] { by_tasks = workers.run([&] { return with_tasks(mpi, keys, of); }); }},
                  {"plain", [&] { by_plain = plain(keys, of); }}},
                 rounds);
  int right = is_sorted_whole(keys, by_tasks, of) && by_tasks == by_plain, all_right = 0;
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  std::printf("%s\n", all_right != 0 ? "verified" : "WRONG");
  return all_right != 0 ? 0 : 1;
}
