// SPDX-License-Identifier: Apache-2.0
#include "omp/work_sharing/turn_table.hpp"

namespace amasia::omp {

OrderedLoop& TurnTable::loop_of(std::uint32_t region, std::uint64_t number) {
  AMASIA_CHECK(region >= region_, "no thread is in a loop of an earlier region");
  if (region > region_) {
    // Regions come one after the other; what is left of the last one was cancelled.
    loops_.clear();
    region_ = region;
  }
  return loops_[number];
}

OrderedLoop& TurnTable::open(std::uint32_t region, std::uint64_t number, std::uint32_t threads) {
  OrderedLoop& loop = loop_of(region, number);
  if (!loop.begun) {
    loop.begun = true;
    loop.threads_to_come = threads;
  }
  AMASIA_CHECK(loop.threads_to_come > 0, "each thread of the node begins a loop once");
  --loop.threads_to_come;
  ++loop.threads_here;
  return loop;
}

void TurnTable::close(std::uint32_t region, std::uint64_t number) {
  OrderedLoop& loop = loop_of(region, number);
  AMASIA_CHECK(loop.threads_here > 0, "each thread of the node ends a loop once");
  if (--loop.threads_here == 0 && loop.threads_to_come == 0) loops_.erase(number);
}

void TurnTable::hear(std::uint32_t region, std::uint64_t number, std::uint64_t iteration) {
  if (region < region_) return;  // it was cancelled, and nobody waits for the turn
  loop_of(region, number).raise(iteration);
}

bool TurnTable::is_open(std::uint32_t region, std::uint64_t number) {
  const OrderedLoop* const loop = region == region_ ? find(number) : nullptr;
  return loop != nullptr && loop->threads_here > 0;
}

OrderedLoop& TurnTable::join(std::uint32_t region, std::uint64_t number, std::uint64_t turn) {
  AMASIA_CHECK(is_open(region, number), "a thread joins those that are in it");
  OrderedLoop& loop = *find(number);
  ++loop.threads_here;
  loop.raise(turn);
  return loop;
}

}  // namespace amasia::omp
