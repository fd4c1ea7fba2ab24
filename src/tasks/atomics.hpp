// SPDX-License-Identifier: Apache-2.0
// What the concurrent cores of this layer are written against, so that the same code runs on real
// atomics and under the explorer of interleavings (interleavings.hpp), which has its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/os.hpp"

namespace amasia::tasks {

// Faults that a test plants in a core, to see that the explorer finds them.
enum class Bug {
  kNone,
  kPopWithoutFence,        // deque: the owner's claim may still be in its store buffer
  kPopTakesLastFreely,     // deque: no race with thieves for the last element
  kStealReadsAfterClaim,   // deque: the element is read when it may have been overwritten
  kPopIgnoresTaking,       // deque: no look at who takes several
  kPopLooksAtTopFirst,     // deque: who has just taken several is seen neither way
  kPopTakesNearOnes,       // deque: what the last of several would be is taken freely
  kGrowthForgets,          // deque: the new array lacks an element
  kSetLeavesLateWaiters,   // promise: list taken and word set in two steps
  kAddWithoutLooking,      // promise: a waiter is linked over a word that is set already
  kValueAfterSet,          // promise: waiters are let go before the value is there
  kWorksWithoutEntering,   // finish: counts are kept by one who has not entered
  kLeavesInTwoSteps,       // finish: the sum and the participant go one after the other
  kOwnerIgnoresOthers,     // finish: the owner's look does not ask who else takes part
  kSleepWithoutBarrier,    // idle workers: no barrier between announcement and last look
  kLooksBeforeAnnouncing,  // idle workers: the last look comes first
  kWakesWithoutRinging,    // idle workers: who is not yet asleep does not hear of it
  kDropsClaimedWakeUp,     // idle workers: one who was claimed, and found other work, says nothing
  kPassesOnToAnyone,       // idle workers: who is woken instead may not serve the place
  kWakesAnyone,            // idle workers: the same of who makes work
  kWakesWithoutClaiming,   // idle workers: two wake-ups for one worker, none for the other
  kWakesUncounted,         // stall watch: who was claimed meanwhile has run, unseen
  kLastOperationIsSilent,  // stall watch: who went to sleep before its end is not asked again
  kLooksBeforeOperations,  // stall watch: what an operation stored is looked for too early
  kLineTakesNewestFirst,   // line of calls: as they are linked
  kLineTakesInTwoSteps,    // line of calls: what comes between is lost
};

struct RealAtomics {
  template <typename T>
  using Atomic = std::atomic<T>;
  static constexpr bool has(Bug) { return false; }
  static void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                          Nanos most = -1) {
    os::futex_wait(word, value, most);
  }
  static void wake(const std::atomic<std::uint32_t>& word) { os::futex_wake(word, 1); }
};

}  // namespace amasia::tasks
