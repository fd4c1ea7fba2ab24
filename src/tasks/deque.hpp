// SPDX-License-Identifier: Apache-2.0
// A growing deque of pointers: its owner pushes and pops at the bottom, thieves steal at the top.
// Chase and Lev (SPAA 2005), with the orders of Lê, Pop, Cohen and Zappa Nardelli (PPoPP 2013).
// Where they have fences, the accesses next to them are sequentially consistent here: on x86 these
// are the same instructions, and ThreadSanitizer understands them.
//
//   field      written by                  read by
//   top_       thieves, and the owner      all; only ever grows
//              for the last element
//   bottom_    the owner                   all
//   offered_   the owner                   all; beside bottom_, which they read anyway
//   array_     the owner, when it grows    all
//   top_seen_  the owner, from top_        the owner: a look at top_ itself, which thieves write,
//                                          would miss the cache for each push
//   taking_    the thief in steal_some()   all
//
//   push        owner   bottom_ + 1 once the element is in its slot
//   pop         owner   claims bottom_ - 1 first, then looks at taking_, then at top_ (D1, D4)
//   steal       any     reads the element before it claims it (D2)
//   steal_some  any     the same with up to kMost elements and one claim, while taking_ is set
//
// Invariants: top_ <= bottom_ but within pop(); elements are those of slots [top_, bottom_).
// (D1) A claim is visible before top_ is read: owner and thief cannot both miss each other.
// (D2) Once top_ has moved on, the owner may write over the slot.
// (D3) An array that was replaced stays readable as long as the deque: a thief may still read it,
// and its claim decides. A deque that grew to n has arrays of n + n/2 + n/4 ...: below 2n.
// (D4) Chase and Lev's owner takes an element freely if it is not the last: a thief that has missed
// its claim wants another one. Here a thief may want any of [top, top + kMost): the owner takes
// freely only what lies behind those, or where nobody takes several. Thief: sets taking_, reads
// bottom_; owner: writes bottom_, reads taking_: they cannot both miss each other. The owner reads
// top_ last: if taking_ is no longer set, that claim shows there. If it is, the owner claims the
// oldest element, as a thief does: then no claim of several that is under way succeeds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.hpp"
#include "tasks/atomics.hpp"

namespace amasia::tasks {

// What Deque::lone() says where there is not one element.
inline constexpr std::int64_t kSeveral = -1, kNothing = -2;

template <typename T, typename Atomics = RealAtomics, std::int64_t kMost = 32>
class Deque {
 public:
  static constexpr std::int64_t kMostStolen = kMost;  // at once
  explicit Deque(std::int64_t capacity = 256) {
    AMASIA_CHECK(capacity > 0 && (capacity & (capacity - 1)) == 0, "slots are found by a mask");
    arrays_.push_back(std::make_unique<Array>(capacity));
    array_.store(arrays_.back().get(), std::memory_order_relaxed);
  }
  Deque(const Deque&) = delete;
  Deque& operator=(const Deque&) = delete;

  // The owner. May allocate; nothing is ever dropped. `offered`: others are to take it soon.
  void push(T* element, bool offered = false) {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
    if (offered) offered_.store(bottom, std::memory_order_relaxed);
    Array* array = array_.load(std::memory_order_relaxed);
    if (bottom - top_seen_ >= array->size) [[unlikely]] {
      top_seen_ = top_.load(std::memory_order_acquire);  // D2; partner: steal()
      if (bottom - top_seen_ >= array->size) array = grow(array, top_seen_, bottom);
    }
    array->slot(bottom).store(element, std::memory_order_relaxed);
    bottom_.store(bottom + 1, std::memory_order_release);  // partner: steal()'s read of bottom_
  }

  // The owner. The newest element, or nullptr; the oldest where a thief is taking several of few.
  T* pop() {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed) - 1;
    // Only the owner adds: what looks empty to it is empty, and costs no fence.
    if (top_.load(std::memory_order_relaxed) > bottom) return nullptr;
    Array* const array = array_.load(std::memory_order_relaxed);
    if (Atomics::has(Bug::kPopWithoutFence)) {
      bottom_.store(bottom, std::memory_order_release);
    } else {
      bottom_.store(bottom, std::memory_order_seq_cst);  // D1; partner: steal()
    }
    bool shared = Atomics::has(Bug::kPopLooksAtTopFirst) ? false : taking();  // D4
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    if (Atomics::has(Bug::kPopLooksAtTopFirst)) shared = taking();
    if (top > bottom) {
      bottom_.store(bottom + 1, std::memory_order_relaxed);
      return nullptr;
    }
    if (shared && bottom - top < kNear) [[unlikely]] {
      bottom_.store(bottom + 1, std::memory_order_relaxed);
      return steal_surely();
    }
    T* element = array->slot(bottom).load(std::memory_order_relaxed);
    if (top == bottom) {  // the last one: a race with thieves for top_
      const bool won = top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                                    std::memory_order_relaxed);
      if (!won && !Atomics::has(Bug::kPopTakesLastFreely)) element = nullptr;
      bottom_.store(bottom + 1, std::memory_order_relaxed);
    }
    return element;
  }

  // Any thread. The oldest element, or nullptr where there is none or another thread was quicker;
  // `*lost` says which.
  T* steal(bool* lost = nullptr) {
    if (lost != nullptr) *lost = false;
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    const std::int64_t bottom = bottom_.load(std::memory_order_seq_cst);  // D1; partner: pop()
    if (top >= bottom) return nullptr;
    Array* const array = array_.load(std::memory_order_acquire);
    T* element = nullptr;
    if (!Atomics::has(Bug::kStealReadsAfterClaim)) {  // D2
      element = array->slot(top).load(std::memory_order_relaxed);
    }
    if (!top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                      std::memory_order_relaxed)) {
      if (lost != nullptr) *lost = true;
      return nullptr;
    }
    if (Atomics::has(Bug::kStealReadsAfterClaim)) {
      element = array->slot(top).load(std::memory_order_relaxed);
    }
    return element;
  }

  // Any thread. Several of the oldest elements, at most half of all, oldest first; how many. 0
  // where there are few, or another thread takes several, or was quicker: steal() then.
  std::int64_t steal_some(T* (&into)[kMost]) {
    const std::int64_t hint = top_.load(std::memory_order_relaxed);
    if (bottom_.load(std::memory_order_relaxed) - hint < 2 * kMost) return 0;
    if (taking_.exchange(1, std::memory_order_seq_cst) != 0) return 0;  // D4; partner: pop()
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    const std::int64_t bottom = bottom_.load(std::memory_order_seq_cst);
    std::int64_t count = std::min(kMost, (bottom - top) / 2);
    if (count > 0) {
      Array* const array = array_.load(std::memory_order_acquire);
      for (std::int64_t n = 0; n < count; ++n) {
        into[n] = array->slot(top + n).load(std::memory_order_relaxed);
      }
      if (!top_.compare_exchange_strong(top, top + count, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
        count = 0;
      }
    }
    taking_.store(0, std::memory_order_release);  // after the claim; partner: pop()
    return std::max<std::int64_t>(count, 0);
  }

  // Any thread. Where there is one element only: a number that no other element of this deque ever
  // has. A hint.
  std::int64_t lone() const {
    const std::int64_t top = top_.load(std::memory_order_acquire);
    const std::int64_t count = bottom_.load(std::memory_order_acquire) - top;
    return count == 1 ? top : count > 1 ? kSeveral : kNothing;
  }

  // Any thread. Whether the last element that was offered had this number. A hint.
  bool offers(std::int64_t number) const {
    return offered_.load(std::memory_order_relaxed) == number;
  }

  // The owner. The number of the oldest element, or kNothing. That element is there for as long as
  // top() says the same: whoever takes it moves that on, also the owner, which takes it last.
  std::int64_t oldest() const {
    const std::int64_t top = top_.load(std::memory_order_relaxed);
    return top < bottom_.load(std::memory_order_relaxed) ? top : kNothing;
  }
  const typename Atomics::template Atomic<std::int64_t>& top() const { return top_; }

  // Any thread; true at some moment of the call. For others than the owner only a hint.
  bool empty() const {
    return top_.load(std::memory_order_acquire) >= bottom_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::int64_t kNear = Atomics::has(Bug::kPopTakesNearOnes) ? kMost - 1 : kMost;

  bool taking() const {
    if (Atomics::has(Bug::kPopIgnoresTaking)) return false;
    return taking_.load(std::memory_order_seq_cst) != 0;
  }
  // The oldest element, or nullptr where there is none.
  [[gnu::noinline]] T* steal_surely() {
    bool lost = true;
    T* element = nullptr;
    while (lost) element = steal(&lost);
    return element;
  }

  struct Array {
    explicit Array(std::int64_t size_in)
        : size(size_in),
          slots(std::make_unique<typename Atomics::template Atomic<T*>[]>(
              static_cast<std::size_t>(size_in))) {}
    typename Atomics::template Atomic<T*>& slot(std::int64_t index) {
      return slots[static_cast<std::size_t>(index & (size - 1))];
    }
    const std::int64_t size;
    const std::unique_ptr<typename Atomics::template Atomic<T*>[]> slots;
  };

  [[gnu::noinline]] Array* grow(Array* from, std::int64_t top, std::int64_t bottom) {
    arrays_.push_back(std::make_unique<Array>(from->size * 2));  // D3
    Array* const to = arrays_.back().get();
    const std::int64_t first = Atomics::has(Bug::kGrowthForgets) ? top + 1 : top;
    for (std::int64_t index = first; index < bottom; ++index) {
      T* const element = from->slot(index).load(std::memory_order_relaxed);
      to->slot(index).store(element, std::memory_order_relaxed);
    }
    array_.store(to, std::memory_order_release);  // partner: steal()
    return to;
  }

  // Thieves write top_, the owner bottom_: on lines of their own.
  alignas(64) typename Atomics::template Atomic<std::int64_t> top_{0};
  typename Atomics::template Atomic<std::uint32_t> taking_{0};
  alignas(64) typename Atomics::template Atomic<std::int64_t> bottom_{0};
  typename Atomics::template Atomic<std::int64_t> offered_{-1};
  typename Atomics::template Atomic<Array*> array_{nullptr};
  std::int64_t top_seen_ = 0;                   // the owner's: slots before were free at some time
  std::vector<std::unique_ptr<Array>> arrays_;  // the owner's
};

}  // namespace amasia::tasks
