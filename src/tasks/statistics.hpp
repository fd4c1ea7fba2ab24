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
// Written by one thread most often, and by any other.
class SharedCounter {
 public:
  void add(std::int64_t more, bool is_of_the_one) {
    if (is_of_the_one) return of_one_.add(more);
    of_others_.fetch_add(more, std::memory_order_relaxed);
  }
  std::int64_t value() const {
    return of_one_.value() + of_others_.load(std::memory_order_relaxed);
  }

 private:
  Counter of_one_;
  std::atomic<std::int64_t> of_others_{0};
};
struct WorkerCounts {
  Counter run, spawned, stolen, suspended, slept, idle_ns;
};
// Of one worker at one place.
struct PlaceCounts {
  Counter created, copies, bytes, run, time_ns;
};
// Of all modules of that name that were attached. Worker 0 writes all but, now and then,
// `operations`.
struct ModuleCounts {
  explicit ModuleCounts(std::string its_name) : name(std::move(its_name)) {}
  const std::string name;
  SharedCounter operations;
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
