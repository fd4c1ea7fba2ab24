// SPDX-License-Identifier: Apache-2.0
// How many threads of a team each node gets. Pure.
//
// kmpc loops ask for their bounds, so a node's threads can be given more or less to do: a thread
// for each core. gcc computes static shares inline from the thread number and the team size, all
// threads alike; so there a node's power is carried by how many threads it has, on faster nodes
// several for each core (libHetMP, ACM TOCS 2022, 3.1, has a thread a core and leaves such loops
// even), unless its threads stand in for those of a larger team (code/numbered_loop.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "omp/region/region.hpp"

namespace amasia::omp {

// What is to be dealt out. `powers`: of each node as a whole, relative; 0: it takes no part. The
// origin's capacity and power are > 0.
struct Deal {
  std::uint32_t threads = 0;  // of the team; > 0
  bool exact = true;          // false: it may have fewer
  std::span<const std::uint32_t> capacity;
  std::span<const double> powers;
};

// The speed of each of a node's threads for what the node as a whole is to do. `alone`: the origin
// is to do everything.
void set_speeds(std::span<NodeShare> shares, std::span<const double> powers, bool alone);

// Threads by core, as pack_threads does; the powers become the shares' speeds. The origin has a
// thread, the one that forks, also where its power is 0 and another node does all of the loops.
std::vector<NodeShare> deal_by_core(const Deal& deal);
// Threads by power, all of even speed. Where fewer are allowed, as many as divide the work best; a
// node has the same number on each of its cores then.
std::vector<NodeShare> deal_by_power(const Deal& deal);

// The team size of which deal_by_power can make shares for nodes of these core speeds: at most
// kMostThreadsPerCore on the fastest node's cores.
inline constexpr std::uint32_t kMostThreadsPerCore = 8;
std::uint32_t threads_to_divide(std::span<const std::uint32_t> capacity,
                                std::span<const double> core_speeds);

}  // namespace amasia::omp
