// SPDX-License-Identifier: Apache-2.0
// Who waits for what, and the report when nobody can go on.
#include <fmt/format.h>

#include "tasks/scheduler.hpp"

namespace amasia::tasks::detail {

// Every worker has announced that it found nothing, and none was claimed since: nothing runs, and
// what lies in queues, if anything, came after the last look of one that will be woken for it.
void Scheduler::report_deadlock_if_any() {
  if (!busy_.load() || outstanding_.load(std::memory_order_acquire) != 0) return;
  std::string report;
  {
    const os::MutexLock lock(waits_mutex_);
    for (const auto& worker : workers_) {
      if (!idle_.is_idle(worker->id)) return;
    }
    if (has_work() || (workers_[0]->attention.load() & kGoHome) != 0) return;
    std::size_t count = 0;
    for (const Wait* wait = waits_; wait != nullptr; wait = wait->next) {
      report += fmt::format("\n  a task waits {} at {}:{}", wait->kind, wait->where.file_name(),
                            wait->where.line());
      ++count;
    }
    report = fmt::format("deadlock: no task can run, and {} {}", count,
                         count == 1 ? "task waits" : "tasks wait") +
             report;
  }
  if (options_.on_deadlock) return options_.on_deadlock(report);
  base::log_line(base::LogLevel::kError, "{}", report);
  std::abort();
}

void Scheduler::note_wait(Wait* wait) {
  const os::MutexLock lock(waits_mutex_);
  wait->next = waits_;
  if (waits_ != nullptr) waits_->previous = wait;
  waits_ = wait;
}

void Scheduler::forget_wait(Wait* wait) {
  const os::MutexLock lock(waits_mutex_);
  (wait->previous != nullptr ? wait->previous->next : waits_) = wait->next;
  if (wait->next != nullptr) wait->next->previous = wait->previous;
}

}  // namespace amasia::tasks::detail
