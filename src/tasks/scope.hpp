// SPDX-License-Identifier: Apache-2.0
// A finish scope: the tasks that somebody waits for together.
#pragma once

#include <atomic>
#include <exception>
#include <stop_token>

#include "amasia/tasks/detail.hpp"
#include "tasks/finish_count.hpp"

namespace amasia::tasks::detail {

class Scheduler;

//   field       written by                      read by
//   count       participants                    participants; see finish_count.hpp
//   error       the first whose task failed     who ends the scope
//   ended       who opens the scope             who ends it
//   the rest    who opens the scope             all
struct Scope {
  Scope(Scheduler* of, Scope* around, std::stop_token stop_in)
      : scheduler(of),
        parent(around),
        stop(std::move(stop_in)),
        stops_with(around != nullptr && around->may_stop ? around->stopper() : nullptr),
        may_stop(stop.stop_possible() || stops_with != nullptr) {}

  // Of its own token, or of one around it.
  bool stop_requested() const {
    for (const Scope* scope = stopper(); scope != nullptr; scope = scope->stops_with) {
      if (scope->stop.stop_requested()) return true;
    }
    return false;
  }

  FinishCount<> count;
  Scheduler* const scheduler;
  Scope* const parent;
  const std::stop_token stop;
  const Scope* const stops_with;  // the nearest around it that has a token, if any
  const bool may_stop;
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  // Exactly one is set: the strand that waits, or what is made ready (a detached scope).
  Task* waiting = nullptr;
  FutureState* ended = nullptr;

 private:
  const Scope* stopper() const { return stop.stop_possible() ? this : stops_with; }
};

// What one strand of execution has not settled of the scope that it works for.
struct Participation {
  Scope* scope = nullptr;
  std::int64_t net = 0;
};

}  // namespace amasia::tasks::detail
