// SPDX-License-Identifier: Apache-2.0
// What the threads of one rank share of a tree search: chunks of nodes that are yet to be visited.
// A thread works on a stack of its own, gives its oldest nodes when few chunks are left here, and
// takes a chunk when it has none; who finds nothing waits, and is counted (Olivier et al., LCPC
// 2006, "UTS", section 3).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "tree.hpp"

namespace uts {

using Nodes = std::vector<Node>;

// All of it under the lock but for reads of the atomic fields, which are hints.
class SharedStack {
 public:
  SharedStack(int threads, std::size_t enough) : threads_(threads), enough_(enough) {}

  bool wants() const { return available_.load(std::memory_order_relaxed) < enough_; }
  // The first `count` of a thread's own stack, which are the oldest.
  void give(Nodes& own, std::size_t count) {
    const auto end = own.begin() + static_cast<std::ptrdiff_t>(count);
    put(Nodes(own.begin(), end));
    own.erase(own.begin(), end);
  }
  void put(Nodes chunk) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back(std::move(chunk));
    available_.store(chunks_.size(), std::memory_order_relaxed);
  }
  // False: there is none, and the caller is counted as idle until it has got one.
  bool take(Nodes& own, bool& idle) {
    if (idle && available_.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(mutex_);
    if (chunks_.empty()) {
      if (!std::exchange(idle, true)) idle_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    if (std::exchange(idle, false)) idle_.fetch_sub(1, std::memory_order_relaxed);
    own = take_oldest();
    return true;
  }
  // Half of the chunks, for another rank.
  Nodes take_half() {
    const std::lock_guard lock(mutex_);
    Nodes all;
    for (std::size_t count = (chunks_.size() + 1) / 2; count > 0; --count) {
      const Nodes chunk = take_oldest();
      all.insert(all.end(), chunk.begin(), chunk.end());
    }
    return all;
  }
  // No thread here has anything, and none will: only what comes from other ranks changes that.
  bool is_at_rest() {
    if (idle_.load(std::memory_order_relaxed) < threads_) return false;
    const std::lock_guard lock(mutex_);
    return chunks_.empty() && idle_.load(std::memory_order_relaxed) == threads_;
  }

  // Of all threads; one of them says so when the tree is done.
  void end() { over_.store(true, std::memory_order_release); }
  bool is_over() const { return over_.load(std::memory_order_acquire); }

 private:
  Nodes take_oldest() {
    Nodes chunk = std::move(chunks_.front());
    chunks_.pop_front();
    available_.store(chunks_.size(), std::memory_order_relaxed);
    return chunk;
  }

  const int threads_;
  const std::size_t enough_;
  std::mutex mutex_;
  std::deque<Nodes> chunks_;
  std::atomic<std::size_t> available_{0};
  std::atomic<int> idle_{0};
  std::atomic<bool> over_{false};
};

// A thread that waits: the core is others' where there are more of them than cores.
class Patience {
 public:
  void pause() {
    if (++turns_ % 64 == 0) {
      sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }

 private:
  unsigned turns_ = 0;
};

}  // namespace uts
