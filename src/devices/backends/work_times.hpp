// SPDX-License-Identifier: Apache-2.0
// What is known of how long works take. On GPUs an event that records a time costs as much as a
// third of a launch, in OpenCL more than the launch itself, so that only some works are measured
// unless all times are wanted; the others' are taken from those.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

#include "devices/backends/backend.hpp"

namespace amasia::devices {

inline std::uint64_t items_of(const Work& work) {
  return work.global[0] * work.global[1] * work.global[2];
}

// How long a kernel takes for each of its work items, by the last launch that was measured. Any
// thread: a guess, nothing but time depends on it.
class KernelTime {
 public:
  // Nanoseconds; negative: none was measured.
  double expected(std::uint64_t items) const {
    return per_item_.load(std::memory_order_relaxed) * static_cast<double>(items);
  }
  void learn(std::uint64_t items, Nanos took) {
    per_item_.store(static_cast<double>(took) / static_cast<double>(items),
                    std::memory_order_relaxed);
  }
  // Whether the launch that this is asked for is to be measured, where not all are.
  bool is_due() {
    constexpr std::uint32_t kAtFirst = 4, kEvery = 16;
    const std::uint32_t launches = launches_.fetch_add(1, std::memory_order_relaxed);
    return launches < kAtFirst || launches % kEvery == 0 ||
           per_item_.load(std::memory_order_relaxed) < 0;
  }

 private:
  std::atomic<double> per_item_{-1};
  std::atomic<std::uint32_t> launches_{0};
};

// Of a work that was not measured, by the clock of the host.
struct SeenTimes {
  Nanos sent = 0;          // when it was submitted
  Nanos before_ended = 0;  // what stood before it in its queue; 0: nothing did
  Nanos ended = 0;
  bool has_kernel = false, copied_in = false, copied_out = false;
};
// The kernel is taken to have run just before the end, as long as is `expected` (below 0: not
// known), and the copies to the device to have begun when nothing stood before them any more.
inline Outcome estimate_times(const SeenTimes& seen, double expected) {
  Outcome times;
  const Nanos first = std::min(std::max(seen.sent, seen.before_ended), seen.ended);
  Nanos began = seen.ended;
  if (seen.has_kernel) {
    const Nanos took = expected < 0 ? seen.ended - first : std::llround(expected);
    began = times.run_began = std::max(seen.ended - took, first);
    times.run_ended = seen.ended;
  }
  if (seen.copied_in) times.copy_began = std::min(first, began);
  if (seen.copied_out) times.copy_ended = seen.ended;
  return times;
}

// Of several works that ran one after the other, and take as long each: the first one's times, and
// how long after it the others ended, one after the other.
inline Outcome estimate_row(const SeenTimes& seen, double expected, std::size_t works,
                            Nanos* interval) {
  const auto count = static_cast<double>(works);
  Outcome first = estimate_times(seen, expected < 0 ? expected : expected * count);
  *interval = (first.run_ended - first.run_began) / static_cast<Nanos>(works);
  first.run_ended = first.run_began + *interval;
  return first;
}

}  // namespace amasia::devices
