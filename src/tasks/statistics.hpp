// SPDX-License-Identifier: Apache-2.0
// Counters, and the texts that are made of them.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "amasia/tasks.hpp"

namespace amasia::tasks::detail {

// Written by one thread, readable by all at any time.
class Counter {
 public:
  void add(std::int64_t more) {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};
struct WorkerCounts {
  Counter run, spawned, stolen, suspended, slept, idle_ns;
};
// Of one worker at one place.
struct PlaceCounts {
  Counter created, copies, bytes, run, time_ns;
};
// Of all modules of that name that were attached. Worker 0 writes all but `operations`.
struct ModuleCounts {
  explicit ModuleCounts(std::string its_name) : name(std::move(its_name)) {}
  const std::string name;
  std::atomic<std::uint64_t> operations{0};
  Counter calls, calls_ns, polls, polls_ns;
};

// All that is counted, as values.
struct Statistics {
  std::vector<worker_statistics> workers;
  std::vector<place_statistics> places;
  std::vector<module_statistics> modules;
  std::vector<span_statistics> spans;
};
// For people: tables. For programs: one object of JSON. Pure.
std::string text_of(const Statistics& all);
std::string json_of(const Statistics& all);

}  // namespace amasia::tasks::detail
