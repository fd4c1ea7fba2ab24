// SPDX-License-Identifier: Apache-2.0
// What the leader of a node's team does in a run of a region, by the processor's counters: cache
// misses and instructions, from which follows how much a region strains the memory (libHetMP, ACM
// TOCS 2022, 3.4, question 3). All threads of a region do the like, so one of them tells.
//
// Only in runs that probe a region: a reading is a system call, at the region's begin and end and
// around each wait. Spinning is not counted: its instructions miss nothing.
//
// Used by one node's leader, one region after the other. Where the thread is another one than in
// the last region, the counters are opened for it anew.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::omp {

struct CounterSettings {
  // In the place of cache misses and of instructions. Tests take what every kernel counts.
  std::array<os::PerfEvent, 2> events = {os::PerfEvent::kCacheMisses,
                                         os::PerfEvent::kInstructions};
  int least_descriptor = 0;
};

class LeaderCounters {
 public:
  struct Counts {
    std::uint64_t cache_misses = 0, instructions = 0;
  };

  explicit LeaderCounters(const CounterSettings& settings) : settings_(settings) {}

  // On the leader, native stack: from now on it counts. False: the machine does not let us, which
  // is said once (debug), and found out once.
  bool begin();
  // On any stack; a wait begins, or is over.
  void stop();
  void go_on();
  // What was counted since begin(), waits left out; zero where readings failed.
  Counts end();

 private:
  void open();
  CounterSettings settings_;
  std::unique_ptr<os::PerfGroup> group_;
  bool refused_ = false;
  bool runs_ = false;
  os::PerfReading last_;
  std::array<double, 2> counted_{};
};

}  // namespace amasia::omp
