// SPDX-License-Identifier: Apache-2.0
// Events of workers, for traces, and the sums that statistics are made of.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "amasia/tasks.hpp"
#include "os/os.hpp"

namespace amasia::tasks::detail {

// Of one worker. Events are the worker's own until all is over; sums are read at any time.
class WorkerLog {
 public:
  struct Sum {
    std::uint64_t times = 0;
    std::int64_t time_ns = 0;
  };
  // Category, name and place; the texts by address.
  using Key = std::tuple<const char*, const char*, std::uint32_t>;

  void record(const trace_event& event) {
    if (events_.size() < kMostEvents) {
      events_.push_back(event);
    } else {
      ++left_out_;
    }
  }
  void add(const Key& key, std::int64_t time_ns) {
    const os::MutexLock lock(mutex_);
    Sum& sum = sums_[key];
    ++sum.times;
    sum.time_ns += time_ns;
  }
  std::map<Key, Sum> sums() const {
    const os::MutexLock lock(mutex_);
    return sums_;
  }
  const std::vector<trace_event>& events() const { return events_; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  static constexpr std::size_t kMostEvents = 2'000'000;  // 64 bytes each
  std::vector<trace_event> events_;
  std::uint64_t left_out_ = 0;
  mutable os::Mutex mutex_;
  std::map<Key, Sum> sums_ AMASIA_GUARDED_BY(mutex_);
};

// The Trace Event Format of Chrome, one event a line. Pure. Times are told from the first event on.
std::string trace_text(const std::vector<const WorkerLog*>& logs, int process);
// "%p" stands for the process.
std::string trace_path(const std::string& pattern, int process);

}  // namespace amasia::tasks::detail
