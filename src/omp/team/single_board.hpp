// SPDX-License-Identifier: Apache-2.0
// Who executes which single construct of a region: first come, over all nodes. A program may rely
// on that: with nowait, threads inside a single may wait for one that went past it.
//
// The origin's board has the claims. Its own threads claim there directly, and tell the other nodes
// so at once, which mostly spares those a question: the first thread of another node to come asks
// the origin unless it has been told; the node's other threads need not, since it asked for them.
//
// field      | written by                     | read by        | ordered by
// claims_    | origin: threads, handler;      | same           | compare-and-swap
//            | others: threads (who asks)     |                |
// told_      | handler                        | threads        | release/acquire
// answers_   | handler                        | thread i       | release/acquire
// used_      | who writes one of these        | reset()        | as claims_: the region's end
// S1 A number's slot of claims_ never goes back to a lower number: a slot that has a higher one
// says
//    that the number was claimed, because whoever claimed the higher one had passed it.
// S2 A thread has at most one question open; its answer has the question's number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/base.hpp"

namespace amasia::omp {

class SingleBoard {
 public:
  enum class Verdict : std::uint8_t { kUnknown, kTaken, kMine };

  // Before a region in which `threads` threads of this node take part; nobody else uses the board.
  void reset(std::uint32_t threads);

  // True for the first to call it with this number. Any thread, handlers too.
  bool claim(std::uint64_t number);

  // Handler: the origin's threads have taken single `number`.
  void tell(std::uint64_t number);
  // Handler: the answer to the question of thread `local_id`. False: there is no such thread.
  bool answer(std::uint32_t local_id, std::uint64_t number, bool granted);
  // What thread `local_id`, which has asked about `number`, knows by now.
  Verdict verdict(std::uint32_t local_id, std::uint64_t number) const;

 private:
  static constexpr std::size_t kSlots = 256;

  void note_use() {
    // Relaxed, as the slots are: whoever resets the board comes after all of them.
    if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, kSlots> claims_{};  // number + 1 of the last claim
  std::array<std::atomic<std::uint64_t>, kSlots> told_{};    // number + 1
  std::unique_ptr<std::atomic<std::uint64_t>[]> answers_;    // (number + 1) * 2 + granted
  std::atomic<bool> used_{false};  // since it was reset: most regions have no single construct
  std::uint32_t threads_ = 0;
  std::uint32_t room_ = 0;
};

}  // namespace amasia::omp
