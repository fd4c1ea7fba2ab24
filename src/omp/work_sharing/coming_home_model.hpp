// SPDX-License-Identifier: Apache-2.0
// For models of rows of loops (turn_table_test, post_table_test): when all other nodes' threads may
// come home to node 0. Their Thread says by `at` whether it has yet to begin its `loop`, is in it,
// or has ended the region.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace amasia::omp {

template <typename Thread>
bool is_inside(const Thread& thread) {
  using At = decltype(thread.at);
  return thread.at != At::kBegin && thread.at != At::kJoined;
}

// `threads`: of which the first `at_home` are node 0's. All have met as many loops, and if others
// are in the last of them, it is_open(number) on node 0.
template <typename Thread, typename IsOpen>
bool may_come_home(const std::vector<Thread>& threads, std::size_t at_home, IsOpen is_open) {
  using At = decltype(Thread::at);
  const auto met = [](const Thread& thread) { return thread.loop + (is_inside(thread) ? 1 : 0); };
  const std::uint64_t first = met(threads.front());
  for (const Thread& thread : threads) {
    if (thread.at == At::kJoined || met(thread) != first) return false;
  }
  const auto away = threads.begin() + static_cast<std::ptrdiff_t>(at_home);
  return std::none_of(away, threads.end(), is_inside<Thread>) || is_open(first - 1);
}

}  // namespace amasia::omp
