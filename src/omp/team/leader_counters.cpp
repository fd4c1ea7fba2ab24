// SPDX-License-Identifier: Apache-2.0
#include "omp/team/leader_counters.hpp"

#include <cmath>

namespace amasia::omp {

void LeaderCounters::open() {
  group_.reset();
  auto opened = os::PerfGroup::open(settings_.events, settings_.least_descriptor);
  if (opened.ok()) {
    group_ = std::make_unique<os::PerfGroup>(std::move(opened).value());
  } else {
    base::log_line(base::LogLevel::kDebug, "{}", opened.error().message);
    refused_ = true;
  }
}

bool LeaderCounters::begin() {
  if (refused_) return false;
  if (!group_ || group_->thread_id() != os::current_thread_id()) {
    // In a runtime section: what it opens, and why it could not, are this node's files.
    os::in_runtime_section([this] { open(); });
    if (refused_) return false;
  }
  counted_ = {};
  go_on();
  return runs_;
}

void LeaderCounters::stop() {
  os::PerfReading now;
  if (!runs_) return;
  runs_ = false;
  if (!group_->read(now)) return;
  const auto counted = os::counted_between(last_, now);
  if (!counted) return;
  for (std::size_t i = 0; i < counted_.size(); ++i) counted_[i] += (*counted)[i];
}

void LeaderCounters::go_on() { runs_ = group_ != nullptr && group_->read(last_); }

LeaderCounters::Counts LeaderCounters::end() {
  stop();
  return {static_cast<std::uint64_t>(std::llround(counted_[0])),
          static_cast<std::uint64_t>(std::llround(counted_[1]))};
}

}  // namespace amasia::omp
