// SPDX-License-Identifier: Apache-2.0
// Pools of one loop that is handed out at run time: one global pool, and one pool per node which a
// thread of the node refills for all of them (libHetMP, ACM TOCS 2022, 3.1). Pure state: whoever
// holds a pool guards it and carries requests.
#pragma once

#include <cstdint>
#include <span>

#include "base/base.hpp"
#include "loops/schedule.hpp"

namespace amasia::loops {

// What a node is given, and whether the loop has more for whoever asks again.
struct Refill {
  Iterations range;
  bool more = false;
};

// What has not been given to any node yet: always the loop's tail.
// Invariant: next_ <= count_; [0, next_) was given out, each number once.
class GlobalPool {
 public:
  GlobalPool() = default;
  // Of `count` iterations [0, given) were dealt out beforehand; `threads` are the whole team's.
  GlobalPool(ScheduleRequest request, std::uint64_t count, std::uint64_t given,
             std::uint32_t threads);

  // Iterations for a node with `node_threads` threads of the team; an empty range: there are none.
  Refill take(std::uint32_t node_threads);
  std::uint64_t remaining() const { return count_ - next_; }

 private:
  ScheduleRequest request_{ScheduleKind::kDynamic, 0};
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 0;
  std::uint32_t threads_ = 1;
};

// Every node's first refill, which each can compute by itself: a loop begins without a message, and
// a short one ends without any.
struct FirstDeal {
  Refill refill;            // for the node of the given rank
  std::uint64_t given = 0;  // what all nodes together got
};
FirstDeal first_deal(ScheduleRequest request, std::uint64_t count,
                     std::span<const std::uint32_t> node_threads, std::size_t rank);

// What a node has left of its refills. At most one request to the global pool is under way.
//   state       take()                            deliver(refill)
//   stocked     a range; asks early when low      –, or with a request under way: kept in reserve
//   empty       kAsk, and the state is asking     –
//   asking      kWait                             stocked; or drained, if there is no more
//   drained     kDone                             –
class NodePool {
 public:
  enum class Answer : std::uint8_t {
    kIterations,        // execute `range`
    kIterationsAndAsk,  // the same, and request a refill: the pool is running low
    kAsk,               // request a refill, then take again once it was delivered
    kWait,              // another thread has requested one; take again once it was delivered
    kDone,              // the loop has no more iterations for this node
  };
  struct Taken {
    Answer answer = Answer::kDone;
    Iterations range;
  };

  NodePool() = default;
  NodePool(ScheduleRequest request, Sharers sharers, Refill first);

  Taken take();
  // The answer to a request.
  void deliver(Refill refill);

  bool asking() const { return asking_; }
  bool is_valid() const;

 private:
  bool low() const;

  ScheduleRequest request_{ScheduleKind::kDynamic, 0};
  Sharers sharers_;
  Iterations stock_;
  Iterations reserve_;  // a refill that came before the stock was used up
  bool asking_ = false;
  bool more_ = false;  // the global pool may have more to give
};

}  // namespace amasia::loops
