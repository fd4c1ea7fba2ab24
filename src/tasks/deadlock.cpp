// SPDX-License-Identifier: Apache-2.0
// Who waits for what, and the report when nobody can go on.
#include <fmt/format.h>

#include <algorithm>

#include "tasks/scheduler.hpp"

namespace amasia::tasks::detail {
namespace {

// Of "... AwaitingBody<1, main()::<lambda()> > ..." what comes after the comma: compilers name the
// function that a template was made for.
std::string body_of(const char* function) {
  const std::string_view text(function);
  constexpr std::string_view kBefore = "AwaitingBody<";
  const auto begin = text.find(kBefore);
  if (begin == text.npos) return std::string(text);
  const auto first = text.find(", ", begin);
  if (first == text.npos) return std::string(text);
  int depth = 1;
  std::size_t end = first + 2;
  for (; end < text.size(); ++end) {
    if (text[end] == '<') ++depth;
    if (text[end] == '>' && text[end - 1] != '-' && --depth == 0) break;
  }
  std::string name(text.substr(first + 2, end - first - 2));
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

std::string line_of(const Wait& wait) {
  if (wait.task == nullptr) {
    return fmt::format("a task waits {} at {}:{}", wait.kind, wait.where.file_name(),
                       wait.where.line());
  }
  std::uint32_t missing = 0;
  for (std::uint32_t n = 0; n < wait.task->count; ++n) {
    if (!is_ready(*wait.task->awaited[n])) ++missing;
  }
  return fmt::format("a task is to begin after {} of {} futures: {}", missing,
                     wait.task->count, body_of(wait.kind));
}

}  // namespace

bool Scheduler::all_sleep() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [&](const auto& worker) { return idle_.is_idle(worker->id); });
}

bool Scheduler::is_stalled() const {
  if (!busy_.load()) return false;
  const auto work_lies_there = [&] {
    return has_work() || errands_.has_calls() || errands_.polls_some() ||
           (workers_[0]->attention.load() & (kGoHome | kRoot)) != 0;
  };
  return stall_watch_.is_stalled([&] { return all_sleep(); }, work_lies_there);
}

// The last operation of a module has ended, on a thread of its own perhaps: who went to sleep
// before saw that it could still make something ready.
void Scheduler::ask_again_if_all_sleep() {
  if (busy_.load() && all_sleep()) idle_.wake(0);
}

void Scheduler::look_for_deadlock() {
  if (!is_stalled()) return;
  judge_ != nullptr ? judge_->stalled() : report_deadlock_if_any();
}

std::vector<std::string> Scheduler::lines_of_waits(const std::source_location& own) const {
  std::vector<std::string> lines;
  const os::MutexLock lock(waits_mutex_);
  for (const Wait* wait = waits_; wait != nullptr; wait = wait->next) {
    const bool is_own = wait->task == nullptr && wait->where.line() == own.line() &&
                        std::string_view(wait->where.file_name()) == own.file_name();
    if (!is_own) lines.push_back(line_of(*wait));
  }
  return lines;
}

void Scheduler::report(const std::string& text) const {
  if (options_.on_deadlock) return options_.on_deadlock(text);
  base::log_line(base::LogLevel::kError,
                 "{}\n  (where another thread is to put what they wait for, no deadlock can be "
                 "seen: options::detect_deadlock = false)",
                 text);
  std::abort();
}

void Scheduler::report_deadlock_if_any() {
  {
    const os::MutexLock lock(waits_mutex_);
    // Of two who see it at once one tells; what it does about it may not be done yet, or is done.
    if (reporting_ || !is_stalled()) return;
    reporting_ = true;
  }
  const auto lines = lines_of_waits({});
  std::string text = fmt::format("deadlock: no task can run, and {} {}", lines.size(),
                                 lines.size() == 1 ? "task waits" : "tasks wait");
  for (const std::string& line : lines) text += "\n  " + line;
  report(text);
  const os::MutexLock lock(waits_mutex_);
  reporting_ = false;
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

void Scheduler::note_awaiting(AwaitingTask* task) {
  auto* const wait = new Wait{task->body_type, {}, task};
  task->noted = wait;
  note_wait(wait);
}

void Scheduler::forget_awaiting(AwaitingTask* task) {
  auto* const wait = static_cast<Wait*>(task->noted);
  forget_wait(wait);
  delete wait;
}

}  // namespace amasia::tasks::detail
