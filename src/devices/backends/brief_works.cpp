// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/brief_works.hpp"

#include <algorithm>
#include <utility>

#include "devices/backends/outcomes.hpp"

namespace amasia::devices {
namespace {

// How many works may fly together, and how long all together are expected to take: that much later
// than it could be the end of the first is told.
constexpr std::size_t kTogetherMost = 16;
constexpr double kTogetherTime = 50 * base::kMicrosecond;
// Works that may be in one with others. A guess that is wrong delays a few ends, once.
constexpr double kBrief = 10 * base::kMicrosecond;

bool are_alike(const Work& one, const Work& other) {
  return one.device == other.device && one.kernel == other.kernel &&
         std::ranges::equal(one.global, other.global);
}

}  // namespace

std::size_t count_together(std::span<const Submission> all, double (*time_of)(const Work&)) {
  const Work& first = all.front().work;
  const auto may_join = [&](const Work& work) {
    const double time = time_of(work);
    return time >= 0 && time <= kBrief;
  };
  if (!may_join(first)) return 1;
  const double each = time_of(first);
  std::size_t most = std::min(all.size(), kTogetherMost);
  if (each > 0) most = std::min(most, 1 + static_cast<std::size_t>(kTogetherTime / each));
  std::size_t count = 1;
  while (count < most && are_alike(first, all[count].work) && may_join(all[count].work)) ++count;
  return count;
}

bool will_tell(std::span<const Passenger> all, const Completion& completion) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Passenger& one) { return one.completion == &completion; });
}

void fail_all(std::span<Passenger> all, const std::string& message) {
  for (Passenger& one : all) {
    if (one.failed == nullptr) {
      one.failed = std::make_unique<Outcome>(failed(Failure::kDevice, message));
    }
  }
}

void tell_ends(std::span<Passenger> all, Outcome next, Nanos interval) {
  const Nanos took = std::min(next.run_ended - next.run_began, interval);
  for (Passenger& one : all) {
    Outcome outcome = next;
    if (one.failed != nullptr) {
      outcome.failure = one.failed->failure;
      outcome.message = std::move(one.failed->message);
    }
    next.run_ended += interval;
    next.run_began = next.run_ended - took;
    if (&one == &all.back()) {
      one.completion->finished(std::move(outcome));
    } else {
      one.completion->finished_with_others(std::move(outcome));
    }
  }
}

}  // namespace amasia::devices
