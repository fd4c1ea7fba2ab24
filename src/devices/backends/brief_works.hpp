// SPDX-License-Identifier: Apache-2.0
// Works that come together, are alike and brief fly together: in one queue of the device, with one
// end that is found out for all of them, and few events (docs/decisions/device_backends.md says
// what those cost). Queues run their commands in order, so the last command is the end of all.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "devices/backends/backend.hpp"
#include "os/os.hpp"

namespace amasia::devices {

// How long a kernel takes for each of its work items, by its last launch. Any thread: a guess,
// nothing but time depends on it.
class KernelTime {
 public:
  // Nanoseconds; negative: there was no launch.
  double expected(std::uint64_t items) const {
    return per_item_.load(std::memory_order_relaxed) * static_cast<double>(items);
  }
  void learn(std::uint64_t items, Nanos took) {
    per_item_.store(static_cast<double>(took) / static_cast<double>(items),
                    std::memory_order_relaxed);
  }

 private:
  std::atomic<double> per_item_{-1};
};

inline std::uint64_t items_of(const Work& work) {
  return work.global[0] * work.global[1] * work.global[2];
}

// Calls `submit(device, works)` with works that follow each other and are of one device.
template <typename Submit>
void by_device(std::span<const Submission> all, const Submit& submit) {
  while (!all.empty()) {
    const LocalDevice device = all.front().work.device;
    std::size_t count = 1;
    while (count < all.size() && all[count].work.device == device) ++count;
    submit(device, all.first(count));
    all = all.subspan(count);
  }
}

// How many of `all`, one at least, fly together, from the first on. `time_of` says how long a work
// is expected to take, as KernelTime; below 0 of one that moves bytes or that nothing is known of.
std::size_t count_together(std::span<const Submission> all, double (*time_of)(const Work&));

// One work of those that fly together, until it is told of its end.
struct Passenger {
  Completion* completion = nullptr;
  std::unique_ptr<Outcome> failed;  // nullptr: nothing was wrong until now
};

bool will_tell(std::span<const Passenger> all, const Completion& completion);

// Of passengers that are under way a failure of the device itself is one of them all.
void fail_all(std::span<Passenger> all, const std::string& message);

// Tells all of their ends, the last one last. `first` has the times of the first one; those of the
// others are taken to be as long, and to end one `interval` after the other. What the passengers'
// works belong to may be gone afterwards.
void tell_ends(std::span<Passenger> all, Outcome first, Nanos interval);

}  // namespace amasia::devices
