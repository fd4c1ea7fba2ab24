// SPDX-License-Identifier: Apache-2.0
// Runs: brief tasks that are alike go to the daemon, and come back, as one, since a record for
// each costs more than they do. Pure.
//
// Only tasks that are ready share a run, so none of it depends on another. A run is bounded in
// time, as other programs' tasks wait for its end, and what a task takes is measured: a guess that
// is wrong makes them wait longer once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "devices/ids.hpp"
#include "devices/wire/records.hpp"

namespace amasia::devices {

class LoadedKernel;
class Task;
struct Outcome;

// What a task of a run may be expected to take; what it takes at least, with its launch; what a run
// of them may.
inline constexpr Nanos kBriefTask = 10 * base::kMicrosecond;
inline constexpr Nanos kLeastTask = 4 * base::kMicrosecond;
inline constexpr Nanos kRunTime = 256 * base::kMicrosecond;

// How many tasks that are expected to take so long (0: not known) may be one run, of which the
// daemon allows `most`; 1: they go alone.
std::uint32_t run_length_max(Nanos expected, std::uint32_t most);

// Whether the daemon could not tell the two apart: kernel, work, devices, priority, buffers.
bool are_alike(const Task& first, const Task& second);

// What is known of a kernel's time, for each of its work items, from its launches: no less than
// most of the latest ones took. One that took long, since somebody else had its core, says little;
// several do.
class BriefTimes {
 public:
  Nanos expected(std::uint64_t items) const;  // 0: not known
  void learn(std::uint64_t items, Nanos took);

 private:
  double per_item_ = 0;
};

// A run that was put and is not granted yet.
struct QueuedRun {
  std::uint64_t number = 0;  // of its first task
  DeviceSet devices = 0;     // that may be given it; each stands there once
  bool heard = false;        // the daemon need not be woken for it any more
};

// Whether the daemon is to be woken for a run that it may sleep over: of the devices that it may be
// given, more are in `room` than there are runs which the daemon knows of and may give to them. It
// gives a run to one device; so one device that is idle is worth one wake-up, not one a run.
bool is_worth_waking(std::span<const QueuedRun> queued, DeviceSet room);

struct Run {
  std::vector<std::shared_ptr<Task>> tasks;  // until it is granted
  std::uint32_t left = 0;                    // tasks that have not ended
  FinishedRecord ended;                      // of those that have, so far
  Nanos ran = 0;                             // of their kernels
  bool is_loaded = false;                    // the kernel, on the device that it was granted
  // Once a task of it has found it: spares the others to look for it. Any thread.
  std::atomic<LoadedKernel*> kernel{nullptr};

  // One task has ended, with this failure (0: none). True: it was the last, `ended` is complete.
  bool note_end(const Outcome& outcome, std::uint8_t failure, Bytes copied);
};

}  // namespace amasia::devices
