// SPDX-License-Identifier: Apache-2.0
// Pools of one loop that is handed out at run time: one global pool, and one pool per node which a
// thread of the node refills for all of them (libHetMP, ACM TOCS 2022, 3.1). Pure state: whoever
// holds a pool guards it and carries requests.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/base.hpp"
#include "loops/report.hpp"
#include "loops/schedule.hpp"
#include "loops/weights.hpp"

namespace amasia::loops {

// What a node is given, and whether the loop has more for whoever asks again.
struct Refill {
  Iterations range;
  bool more = false;
  std::uint64_t piece = 0;  // not 0: its threads take so much each, whatever the schedule is
};

// What has not been given to any node yet: always the loop's tail.
// Invariant: next_ <= count_; [0, next_) was given out, each number once.
class GlobalPool {
 public:
  GlobalPool() = default;
  // `powers`: of the nodes that share the loop, in the order of ranks. Nothing is given out yet.
  GlobalPool(ScheduleRequest request, std::uint64_t count, std::span<const Power> powers);

  // Iterations for a node; an empty range: there are none. A node of speed 0 never gets any.
  Refill take(std::size_t rank);
  // What the node has executed since it told last.
  void note(std::size_t rank, const Report& report);
  std::uint64_t remaining() const { return count_ - next_; }
  // How many iterations the node has been given.
  std::uint64_t given(std::size_t rank) const { return given_[rank]; }
  std::span<const Power> powers() const { return {powers_.data(), nodes_}; }

 private:
  void weigh();
  Taker taker(std::size_t rank) const;

  ScheduleRequest request_{ScheduleKind::kDynamic, 0};
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 0;
  Batch batch_;
  std::size_t nodes_ = 0;
  std::array<Power, base::kMaxNodes> powers_;
  std::array<std::uint64_t, base::kMaxNodes> given_{};
  std::array<Report, base::kMaxNodes> recent_;  // of schedules that adapt
};

// Every node's first refill, which each can compute by itself: a loop begins without a message, and
// a short one ends without any. The refill of `rank`; `pool`, which is new, has given all theirs.
Refill first_deal(GlobalPool& pool, std::size_t nodes, std::size_t rank);

// What a node has left of its refills. At most one request to the global pool is under way.
//   state       take()                            deliver(refill)
//   stocked     a range; asks early when low      –, or with a request under way: kept in reserve
//               (*)
//   empty       kAsk, and the state is asking     –
//   asking      kWait                             stocked; or drained, if there is no more
//   drained     the last iteration, else kDone    –
// (*) Where the schedule adapts only once a thread of the node has something to tell.
// What a thread has in its variables when it leaves the loop is what `lastprivate` keeps, so who
// executes the last iteration must get none after it. Where numbers may fall, the pool that is
// given that iteration keeps it back until it has no other.
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
  // `threads` of the node share it. `count`: of the loop's iterations.
  NodePool(ScheduleRequest request, std::uint64_t count, std::uint32_t threads, Refill first);

  // `returns`: the thread has executed what it took before.
  Taken take(bool returns);
  // The answer to a request.
  void deliver(Refill refill);
  // The global pool has nothing left, which this one has not been told; no request is under way.
  void end();

  bool asking() const { return asking_; }
  // How many iterations it has that no thread has taken.
  std::uint64_t left() const {
    return stock_.size() + reserve_.range.size() + (keeps_last_ ? 1 : 0);
  }
  bool is_valid() const;

 private:
  void restock();
  void keep_last(Iterations& range);
  std::uint64_t next_size() const;
  bool low() const;

  ScheduleRequest request_{ScheduleKind::kDynamic, 0};
  std::uint64_t count_ = 0;
  std::uint32_t threads_ = 1;
  bool keeps_last_ = false;  // the loop's last iteration, in neither stock nor reserve
  bool has_news_ = false;  // a thread has returned since the last request
  Iterations stock_;
  std::uint64_t refill_ = 0;  // the stock's size when it came
  std::uint64_t piece_ = 0;   // what a thread takes of it; 0: as the schedule says
  Refill reserve_;  // a refill that came before the stock was used up
  bool asking_ = false;
  bool more_ = false;  // the global pool may have more to give
};

}  // namespace amasia::loops
