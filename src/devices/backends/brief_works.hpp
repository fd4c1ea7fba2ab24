// SPDX-License-Identifier: Apache-2.0
// Works that come together, are alike and brief fly together: in one queue of the device, with one
// end that is found out for all of them, and few events (docs/decisions/device_backends.md says
// what those cost). Queues run their commands in order, so the last command is the end of all.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "devices/backends/backend.hpp"
#include "devices/backends/work_times.hpp"

namespace amasia::devices {

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
