// SPDX-License-Identifier: Apache-2.0
#include "delegate/futex_table.hpp"

#include <algorithm>

namespace amasia::delegate {

void FutexTable::add(std::uint64_t address, const FutexWaiter& waiter) {
  AMASIA_CHECK(waiter.bitset != 0, "a waiter without a bit could never be woken");
  queues_[address].push_back(waiter);
}

std::vector<FutexWaiter> FutexTable::take(std::uint64_t address, std::uint32_t count,
                                          std::uint32_t bitset) {
  std::vector<FutexWaiter> taken;
  const auto found = queues_.find(address);
  if (found == queues_.end()) return taken;
  std::deque<FutexWaiter>& queue = found->second;
  for (auto waiter = queue.begin(); waiter != queue.end() && taken.size() < count;) {
    if ((waiter->bitset & bitset) == 0) {
      ++waiter;
      continue;
    }
    taken.push_back(*waiter);
    waiter = queue.erase(waiter);
  }
  if (queue.empty()) queues_.erase(found);
  return taken;
}

bool FutexTable::remove(std::uint64_t address, NodeId node, std::uint64_t ticket) {
  const auto found = queues_.find(address);
  if (found == queues_.end()) return false;
  std::deque<FutexWaiter>& queue = found->second;
  const auto waiter = std::find_if(queue.begin(), queue.end(), [&](const FutexWaiter& w) {
    return w.node == node && w.ticket == ticket;
  });
  if (waiter == queue.end()) return false;
  queue.erase(waiter);
  if (queue.empty()) queues_.erase(found);
  return true;
}

}  // namespace amasia::delegate
