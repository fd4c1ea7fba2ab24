// SPDX-License-Identifier: Apache-2.0
// What a runtime counts. Included by <amasia/tasks.hpp>.
//
// Counted always, at no cost to a task: what workers did, tasks that were created at a place,
// copies, operations of modules and the time in their polls, spans. With options::statistics, or
// the variable AMASIA_TASKS_STATISTICS, each task and each call of a module is timed too, and all
// is written at the runtime's end.
#pragma once

#include <cstdint>
#include <string>

#include "amasia/tasks.hpp"

namespace amasia::tasks {

struct worker_statistics {
  std::uint64_t run = 0;        // tasks that it ran
  std::uint64_t spawned = 0;    // that were created on it
  std::uint64_t stolen = 0;     // that it took from other workers
  std::uint64_t suspended = 0;  // waits on it that stopped a stack
  std::uint64_t slept = 0;      // how often it went to sleep
  std::int64_t idle_ns = 0;     // without work, asleep or searching
};

struct place_statistics {
  std::string place;
  std::uint64_t created = 0;  // tasks at it: async_at() and the like
  std::uint64_t copies = 0;   // async_copy() to it
  std::uint64_t bytes = 0;    // of those
  // Where each task is timed, else 0: tasks that ran at it, those without a place at the home of
  // their worker, and how long, without the time for which they were suspended.
  std::uint64_t run = 0;
  std::int64_t time_ns = 0;
};

// Of a module's library, on the thread of run(): worker 0 does nothing else in that time. Modules
// whose libraries may be called by any thread (storage, devices) have operations only.
struct module_statistics {
  std::string module;
  std::uint64_t operations = 0;  // that tasks started
  std::uint64_t calls = 0;       // module_host::call
  std::int64_t calls_ns = 0;     // where each task is timed, else 0
  std::uint64_t polls = 0;
  std::int64_t polls_ns = 0;
};

}  // namespace amasia::tasks
