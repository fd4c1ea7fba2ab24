// SPDX-License-Identifier: Apache-2.0
// Who waits on which futex word, over all nodes: pure bookkeeping, kept by the origin.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/base.hpp"

namespace amasia::delegate {

// A thread that waits. `ticket` names it on its node; FUTEX_WAIT's bitset has all bits.
struct FutexWaiter {
  NodeId node;
  std::uint64_t ticket = 0;
  std::uint32_t bitset = 0;
  friend bool operator==(const FutexWaiter&, const FutexWaiter&) = default;
};

// Not thread-safe: the owner guards it.
class FutexTable {
 public:
  void add(std::uint64_t address, const FutexWaiter& waiter);
  // Removes and returns up to `count` waiters whose bitset meets `bitset`, those that waited
  // longest first, as futex(2) does.
  std::vector<FutexWaiter> take(std::uint64_t address, std::uint32_t count, std::uint32_t bitset);
  // False if it is not there: it was taken before.
  bool remove(std::uint64_t address, NodeId node, std::uint64_t ticket);
  // How many words are waited on. No entry stays for a word that nobody waits on.
  std::size_t words() const { return queues_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::deque<FutexWaiter>> queues_;
};

}  // namespace amasia::delegate
