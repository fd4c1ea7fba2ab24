// SPDX-License-Identifier: Apache-2.0
// Locks that rest on a node: the token is there and nothing is asked about it, so a word says all,
// and taking such a lock and giving it back is a compare-and-swap each, as in one node's runtime.
// Whoever needs more of a lock takes it out first.
//
// field     | written by              | guarded by
// words_    | all methods             | CAS on the word as it was found
// released_ | who gives the lock back | the lock itself; relaxed, an estimate
// R1 A lock is on one shelf at most: put() and take_out() of one key are never called at once.
// R2 A word holds key and state, so a swap succeeds only on the lock that was meant.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::omp {

// Names a lock; below 2^62.
using LockKey = std::uint64_t;

class RestingLocks {
 public:
  static constexpr os::Ticks kNotTimed = 0;
  // What is known of a lock that rested.
  struct Rested {
    bool held = false;
    os::Ticks released = kNotTimed;  // last, while it rested; only if that was to be noted
  };
  enum class Answer : std::uint8_t { kTaken, kHeld, kNotHere };

  RestingLocks() {
    auto words = os::ReservedArray<std::atomic<std::uint64_t>>::make(kLines * kShelves);
    auto released = os::ReservedArray<std::atomic<os::Ticks>>::make(kLines * kShelves);
    AMASIA_CHECK(words.ok() && released.ok(), "there are addresses for 128 MiB");
    words_ = std::move(words).value();
    released_ = std::move(released).value();
    first_ = &words_[0];
  }
  RestingLocks(const RestingLocks&) = delete;
  RestingLocks& operator=(const RestingLocks&) = delete;

  // For any thread, on any stack; they never block.
  //
  // The shortest way, for a lock on its own shelf, as nearly all are. False: it is not there, or is
  // held, or another thread is at it.
  bool take_at_once(LockKey key) {
    std::atomic<std::uint64_t>& shelf = *shelf_of(key, 0);
    std::uint64_t word = shelf.load(std::memory_order_relaxed);
    return (word | kTimedBit) == (key << kFlags | kTimedBit) &&
           // Acquire, partner: give_back.
           shelf.compare_exchange_strong(word, word | kHeldBit, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  // By the thread that holds it; when is not noted, which costs as much as all else.
  bool give_back_at_once(LockKey key) {
    std::atomic<std::uint64_t>& shelf = *shelf_of(key, 0);
    std::uint64_t word = shelf.load(std::memory_order_relaxed);
    return (word | kTimedBit) == (key << kFlags | kTimedBit | kHeldBit) &&
           // Release, partner: try_take and take_out.
           shelf.compare_exchange_strong(word, word & ~kHeldBit, std::memory_order_release,
                                         std::memory_order_relaxed);
  }
  Answer try_take(LockKey key) {
    for (;;) {
      const Found found = find(key);
      if (found.shelf == nullptr) return Answer::kNotHere;
      if ((found.word & kHeldBit) != 0) return Answer::kHeld;
      std::uint64_t word = found.word;
      // Acquire, partner: give_back.
      if (found.shelf->compare_exchange_weak(word, word | kHeldBit, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
        return Answer::kTaken;
      }
    }
  }
  // By the thread that holds it; notes when, if that may be. False: it does not rest here as one
  // that is held.
  bool give_back(LockKey key) {
    const Found found = find(key);
    if (found.shelf == nullptr || (found.word & kHeldBit) == 0) return false;
    if ((found.word & kTimedBit) != 0) {
      released_of(found.shelf).store(os::ticks_now(), std::memory_order_relaxed);
    }
    std::uint64_t word = found.word;
    // Release, partner: try_take and take_out. Fails where the lock has been taken out.
    return found.shelf->compare_exchange_strong(word, word & ~kHeldBit, std::memory_order_release,
                                                std::memory_order_relaxed);
  }

  // Both on a native stack, and for one key not at once. put(): the lock is not here; false: there
  // is no room. `timed`: when it is released is to be noted. Another lock that is free may go for
  // it: it is as its owner has it then, whom nobody tells.
  bool put(LockKey key, bool held, bool timed) {
    const std::uint64_t wanted = key << kFlags | (held ? kHeldBit : 0) | (timed ? kTimedBit : 0);
    // Empty ones first.
    for (const std::uint64_t free_bits : {~std::uint64_t{0}, kHeldBit}) {
      for (std::size_t i = 0; i < kShelves; ++i) {
        std::atomic<std::uint64_t>* const shelf = shelf_of(key, i);
        std::uint64_t word = shelf->load(std::memory_order_relaxed);
        // Fails where a thread takes the other lock, or fills the shelf, right now.
        if ((word & free_bits) == 0 &&
            shelf->compare_exchange_strong(word, wanted, std::memory_order_acq_rel)) {
          released_of(shelf).store(kNotTimed, std::memory_order_relaxed);
          return true;
        }
      }
    }
    return false;
  }
  std::optional<Rested> take_out(LockKey key) {
    for (;;) {
      auto [shelf, word] = find(key);
      if (shelf == nullptr) return std::nullopt;
      const os::Ticks released = released_of(shelf).load(std::memory_order_relaxed);
      // Acquire, partner: give_back.
      if (!shelf->compare_exchange_weak(word, 0, std::memory_order_acquire)) continue;
      return Rested{.held = (word & kHeldBit) != 0,
                    .released = (word & kTimedBit) != 0 ? released : kNotTimed};
    }
  }

 private:
  static constexpr std::uint64_t kHeldBit = 1, kTimedBit = 2;
  static constexpr int kFlags = 2;  // a word of none is an empty shelf's
  // Eight million locks. What no lock is on takes no memory.
  static constexpr std::size_t kLines = std::size_t{1} << 20, kShelves = 8;
  static_assert(kNotTimed == 0);

  static LockKey key_of(std::uint64_t word) { return word >> kFlags; }
  // The i-th one on its line to look at: first the lock's own, if locks are 4 bytes apart and more.
  // Locks that lie side by side share lines, as they do in the program; those at strides do not.
  std::atomic<std::uint64_t>* shelf_of(LockKey key, std::size_t i) const {
    const std::size_t far = (key >> 25) * 0x9e37 * kShelves;
    const std::size_t own = ((key >> 2) + far) % (kLines * kShelves);
    return first_ + (own / kShelves * kShelves + (own + i) % kShelves);
  }
  std::atomic<os::Ticks>& released_of(const std::atomic<std::uint64_t>* shelf) {
    return released_[static_cast<std::uint64_t>(shelf - first_)];
  }
  // With its word, which names the lock until it is swapped.
  struct Found {
    std::atomic<std::uint64_t>* shelf = nullptr;  // nullptr: it is on none
    std::uint64_t word = 0;
  };
  Found find(LockKey key) const {
    for (std::size_t i = 0; i < kShelves; ++i) {
      std::atomic<std::uint64_t>* const shelf = shelf_of(key, i);
      const std::uint64_t word = shelf->load(std::memory_order_relaxed);
      if (word != 0 && key_of(word) == key) return {shelf, word};
    }
    return {};
  }

  // By shelf; a line of the cache holds eight locks' words. Times of release are apart, and used by
  // locks that have travelled.
  os::ReservedArray<std::atomic<std::uint64_t>> words_;
  os::ReservedArray<std::atomic<os::Ticks>> released_;
  std::atomic<std::uint64_t>* first_ = nullptr;
};

}  // namespace amasia::omp
