// SPDX-License-Identifier: Apache-2.0
// Shares by core speed. A node's speed is a whole number, relative to the others' only, so that all
// nodes compute the same shares from the same numbers, to the iteration.
//
// With powers (n_r, s_r) of ranks r, a team has  sum n_r  threads in the order of ranks, and thread
// t of rank r gets one run of a_t iterations,  a_t >= floor(count * s_r / sum n_i * s_i) . What
// these floors leave goes one by one to a thread that would finish it first, that is with the least
// (a_t + 1) / s_r , on a tie the lowest one. So the longest of all a_t / s_r is the least possible,
// and equal speeds give libomp's even split (static_share.hpp).
#pragma once

#include <cstdint>
#include <span>

#include "loops/space.hpp"

namespace amasia::loops {

// The speed of a core where none has been measured; faster ones have more, up to kMaxSpeed, slower
// ones less. 0: the node's threads get no iterations.
inline constexpr std::uint32_t kEvenSpeed = 1u << 16;
inline constexpr std::uint32_t kMaxSpeed = 1u << 24;

// How far a node's run may begin from where it would by speed, for nodes to meet between pages.
enum class Seam : std::uint8_t {
  kFine,    // a 64th of the smallest node's share
  kCoarse,  // a 16th: where a page that two nodes write costs more than iterations do
};

// Static loops' runs meet where the loop variable is a multiple of a power of two, of this at most.
inline constexpr std::uint64_t kMostGrain = 1024;

// A node's part in a team: how many threads, and how fast each of them is.
struct Power {
  std::uint32_t threads = 0;
  std::uint32_t speed = kEvenSpeed;
  Seam seam = Seam::kFine;  // the coarsest of a team is that of all

  constexpr std::uint64_t total() const { return std::uint64_t{threads} * speed; }
  friend constexpr bool operator==(const Power&, const Power&) = default;
};

// floor(value * part / whole), exactly; part <= whole, which is not 0.
constexpr std::uint64_t part_of(std::uint64_t value, std::uint64_t part, std::uint64_t whole) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(value) * part / whole);
}

// Whether shares can be computed from them: at most kMaxNodes, not all 0, none above kMaxSpeed.
bool is_valid(std::span<const Power> powers);
// Whether they all get the same; shares are then those of static_block().
bool is_even(std::span<const Power> powers);

// schedule(static) without a chunk, by speed: the run of a node's thread `local_thread`; empty if
// it has none. `powers` is valid. No allocation, any thread.
Iterations weighted_block(std::uint64_t count, std::span<const Power> powers, std::size_t rank,
                          std::uint32_t local_thread);
// The same as a program's loop is divided. One of no more iterations than the team has threads
// gives each thread one, whatever its speed: programs count on that, and make one thread's
// iteration wait for another's. In one of many iterations the nodes' runs meet where the loop
// variable is a multiple of a power of two, up to 1024, the greatest one that Seam allows, as
// elements of a page are better left to one node; where a node has fewer than 1024 they are divided
// by speed alone. `by_speed`: whether speeds had a say.
Iterations static_share(const Space& space, std::span<const Power> powers, std::size_t rank,
                        std::uint32_t local_thread, bool* by_speed);
// The same for parts that may wait for one another, as sections do in programs that count on
// threads: no thread of a node that works gets a second one while another has none.
Iterations unweighted_block(std::uint64_t count, std::span<const Power> powers, std::size_t rank,
                            std::uint32_t local_thread);
// What the threads of a node get together: their runs are neighbours.
Iterations weighted_node_block(std::uint64_t count, std::span<const Power> powers,
                               std::size_t rank);
// That of each rank; `blocks` is as long as `powers`.
void weighted_node_blocks(std::uint64_t count, std::span<const Power> powers,
                          std::span<Iterations> blocks);

// The same, meeting where static_share()'s do. `space` of step 1.
void seamed_node_blocks(const Space& space, std::span<const Power> powers,
                        std::span<Iterations> blocks);

}  // namespace amasia::loops
