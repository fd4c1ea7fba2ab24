// SPDX-License-Identifier: Apache-2.0
// What of a region is cancelled, as one node knows it, and what the team agrees on at its meetings.
// Pure but for the atomics, so that the explorer (cancellation_test) takes every order of accesses.
//
// A thread that cancels raises a flag of its node, and the first one that does tells the other
// nodes, whose handlers raise theirs. Cancellation points look at the flag, which may come late.
// Nobody has to hear of it in time: every thread of the team comes to the next meeting, wherever in
// the region its code has it (a barrier, or the region's end), and there all learn of whatever was
// cancelled before. So no barrier is ever broken. A thread at the region's end comes to meetings
// until all are there.
//
// field      | written by                    | read by          | ordered by
// parallel_  | threads that cancel, handler  | threads, leader  | relaxed: see D2
// workshare_ | the same                      | the same         | the same
// loop_      | the same                      | threads          | the same
// D1 Flags name what they are about: the region's number, and of a loop or sections construct the
//    number of meetings before it. Both rise, so nothing is ever reset, what comes late is about
//    something that is over, and what comes before its region begins here is kept for it.
// D2 A thread raises its flag before it comes to the meeting, whose local half orders that before
//    the leader's look; so what a meeting agrees on has all that was cancelled before it.
// D3 Within one epoch, from one meeting to the next, at most one construct can be cancelled by
//    name: it ends in a meeting (OpenMP forbids `nowait` there).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::omp {

enum class Cancels : std::uint32_t {
  kParallel = 1,
  kWorkshare = 2,  // the loop or sections construct of an epoch
  kLoop = 3,       // the same loop, where it is handed out at run time, by its number
};

// Where a thread is: which region, and how many meetings of its team came before; or which loop.
struct Epoch {
  std::uint32_t region = 0;
  std::uint32_t number = 0;
};

// What a node says at a meeting of a team that can be cancelled: bits of the word's highest byte,
// which the meeting joins. Addresses, which words carry otherwise, leave that byte zero.
inline constexpr std::uint64_t kGoesOn = std::uint64_t{1} << 56;   // a thread is not at the end yet
inline constexpr std::uint64_t kCancelled = std::uint64_t{2} << 56;  // the region is
// And at one that a region may be brought home at (homecoming.hpp).
inline constexpr std::uint64_t kComesHome = std::uint64_t{4} << 56;  // the origin wants that
inline constexpr std::uint64_t kStays = std::uint64_t{8} << 56;      // a node's threads may not
inline constexpr std::uint64_t kTell = std::uint64_t{16} << 56;      // what nodes have done

class CancelFlags {
 public:
  CancelFlags() = default;
  // For models, which copy what they explore.
  CancelFlags(const CancelFlags& other) noexcept { *this = other; }
  CancelFlags& operator=(const CancelFlags& other) noexcept;

  // True: nobody on this node had, so the other nodes have to be told. Any thread, and the handler.
  bool raise(Cancels what, Epoch epoch) noexcept;
  // Whether what a thread is in has been cancelled, as far as this node knows. Any thread.
  bool is_raised(Cancels what, Epoch epoch) const noexcept;
  // What the node says at the meeting that ends `epoch`, when all its threads have come.
  std::uint64_t word(Epoch epoch, bool all_at_end) const noexcept {
    return (all_at_end ? 0 : kGoesOn) | (is_raised(Cancels::kParallel, epoch) ? kCancelled : 0);
  }

 private:
  const std::atomic<std::uint64_t>& flag_of(Cancels what) const noexcept;

  std::atomic<std::uint64_t> parallel_{0};   // the region's number
  std::atomic<std::uint64_t> workshare_{0};  // region and meetings
  std::atomic<std::uint64_t> loop_{0};       // region and the loop's number
};

}  // namespace amasia::omp
