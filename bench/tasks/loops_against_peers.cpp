// SPDX-License-Identifier: Apache-2.0
// Question: what does a parallel loop cost whose work is little, against oneTBB's parallel_for and
// OpenMP's (libgomp)? A loop of N tiles, each of which takes some time, one loop after the other.
// On one worker a loop costs its work and some 0.1 us; on two it may be twice as quick at best,
// less what it takes to tell the other, some 0.3 to 1 us. Aim: at or ahead of oneTBB.
//
//   amasia   forasync, one iteration a tile
//   simple   parallel_for, simple_partitioner, one iteration a range: every tile is a task
//   auto     parallel_for as it is by default
//   OpenMP   parallel for, schedule(static)
//
// loops_against_peers [rounds [tiles steps]]: a tile is so many multiplications, one after the
// other.
#include <tbb/parallel_for.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness.hpp"
#include "peers.hpp"

namespace {

namespace tasks = amasia::tasks;
using bench::Peers;

struct Shape {
  long tiles;
  int steps;  // of a tile
};
constexpr long kMostTiles = 1024;
constexpr double kNsOfAQuestion = 4e6;

// On lines of their own: what one tile writes is nobody else's.
struct alignas(64) Cell {
  double value = 1;
};
std::array<Cell, kMostTiles> cells;

void run_tile(long tile, int steps) {
  double value = cells[static_cast<std::size_t>(tile)].value;
  for (int n = 0; n < steps; ++n) value = value * 0.5 + 1;
  cells[static_cast<std::size_t>(tile)].value = value;
}

void compare(Peers& peers, const Shape& shape, int rounds) {
  const auto [tiles, steps] = shape;
  const double estimate = 300 + static_cast<double>(tiles * steps) * 3;
  const int loops = static_cast<int>(kNsOfAQuestion / estimate);
  const auto with_amasia = [&, tiles = tiles, steps = steps] {
    peers.amasia.run([&] {
      for (int n = 0; n < loops; ++n) {
        tasks::forasync(tasks::range<1>{{0}, {tiles}, {1}},
                        [=](std::ptrdiff_t tile) { run_tile(tile, steps); });
      }
    });
  };
  const auto with_tbb = [&, tiles = tiles, steps = steps](const auto& partitioner) {
    peers.in_tbb([&] {
      for (int n = 0; n < loops; ++n) {
        tbb::parallel_for(
            tbb::blocked_range<long>(0, tiles, 1),
            [=](const tbb::blocked_range<long>& range) {
              for (long tile = range.begin(); tile < range.end(); ++tile) run_tile(tile, steps);
            },
            partitioner);
      }
    });
  };
  const auto with_openmp = [&, tiles = tiles, steps = steps] {
    for (int n = 0; n < loops; ++n) {
#pragma omp parallel for num_threads(peers.workers) schedule(static)
      for (long tile = 0; tile < tiles; ++tile) run_tile(tile, steps);
    }
  };
  bench::compare("loop " + std::to_string(tiles) + " of " + std::to_string(steps), peers.workers,
                 loops, "loop",
                 {{"amasia", with_amasia},
                  {"simple", [&] { with_tbb(tbb::simple_partitioner()); }},
                  {"auto", [&] { with_tbb(tbb::auto_partitioner()); }},
                  {"OpenMP", with_openmp}},
                 rounds, bench::Threads::kAwake);
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::max(1, std::atoi(words[1])) : 15;
  std::vector<Shape> shapes = {{8, 1},    {8, 14},  {8, 75},  {32, 14},  {32, 75},
                               {32, 300}, {2, 300}, {2, 900}, {1000, 14}};
  if (count > 3) shapes = {{std::min(kMostTiles, std::atol(words[2])), std::atoi(words[3])}};
  for (const unsigned workers : {1u, 2u}) {
    Peers peers(workers);
    for (const Shape& shape : shapes) compare(peers, shape, rounds);
  }
  return 0;
}
