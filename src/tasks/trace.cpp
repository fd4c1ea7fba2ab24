// SPDX-License-Identifier: Apache-2.0
#include "tasks/trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tasks/scheduler.hpp"

namespace amasia::tasks {
namespace detail {
namespace {

using base::json_text;

constexpr const char* kTask = "task";

std::string event_text(const trace_event& event, int process, std::int64_t origin_ns) {
  std::string out = fmt::format(
      "{{\"name\":{},\"cat\":{},\"pid\":{},\"tid\":{},\"ts\":{:.3f}", json_text(event.name),
      json_text(event.category), process, event.worker,
      static_cast<double>(event.begin_ns - origin_ns) / 1000);
  switch (event.kind) {
    case event_kind::slice:
      out += fmt::format(",\"ph\":\"X\",\"dur\":{:.3f}",
                         static_cast<double>(event.duration_ns) / 1000);
      break;
    case event_kind::mark:
      out += ",\"ph\":\"i\",\"s\":\"t\"";
      break;
    case event_kind::counter:
      return out + fmt::format(",\"ph\":\"C\",\"args\":{{\"value\":{}}}}}", event.value);
  }
  if (*event.place != '\0') out += ",\"args\":{\"place\":" + json_text(event.place) + "}";
  return out + "}";
}

void emit_slice(Worker& worker, const OpenSpan& span, std::int64_t now_ns) {
  worker.scheduler->emit(worker, {.kind = event_kind::slice,
                                  .category = span.category,
                                  .name = span.name,
                                  .worker = worker.id,
                                  .place = worker.scheduler->place_name(worker, span.place),
                                  .begin_ns = span.began_ns,
                                  .duration_ns = now_ns - span.began_ns});
}

void open(Worker& worker, OpenSpan& span) {
  span.place = worker.here;
  span.earlier_ns = 0;
  span.inner_ns = 0;
  span.outer = worker.open;
  worker.open = &span;
  span.began_ns = os::monotonic_now();
}

// The time in it.
std::int64_t close(Worker& worker, OpenSpan& span) noexcept {
  const std::int64_t now_ns = os::monotonic_now();
  worker.open = span.outer;
  if (worker.traces) emit_slice(worker, span, now_ns);
  return span.earlier_ns + now_ns - span.began_ns;
}

}  // namespace

std::string trace_text(const std::vector<const WorkerLog*>& logs, int process) {
  std::int64_t origin_ns = INT64_MAX;
  for (const WorkerLog* log : logs) {
    for (const trace_event& event : log->events()) {
      origin_ns = std::min(origin_ns, event.begin_ns);
    }
  }
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  std::uint64_t left_out = 0;
  for (std::size_t worker = 0; worker < logs.size(); ++worker) {
    out += fmt::format(
        "{}{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},"
        "\"args\":{{\"name\":\"worker {}\"}}}}",
        worker == 0 ? "" : ",\n", process, worker, worker);
    for (const trace_event& event : logs[worker]->events()) {
      out += ",\n" + event_text(event, process, origin_ns);
    }
    left_out += logs[worker]->left_out();
  }
  return out + fmt::format("\n],\"otherData\":{{\"events left out\":\"{}\"}}}}\n", left_out);
}

std::string trace_path(const std::string& pattern, int process) {
  std::string path = pattern;
  const auto at = path.find("%p");
  return at == std::string::npos ? path : path.replace(at, 2, std::to_string(process));
}

void Scheduler::emit(Worker& worker, const trace_event& event) {
  if (!options_.trace.empty()) worker.log.record(event);
  if (options_.on_event) options_.on_event(event);
}

const char* Scheduler::place_name(const Worker& worker, std::uint32_t place) const {
  return (place == 0 ? worker.home : places_[place].get())->name.c_str();
}

void Scheduler::write_trace() const noexcept {
  if (options_.trace.empty()) return;
  try {
    std::vector<const WorkerLog*> logs;
    for (const auto& worker : workers_) logs.push_back(&worker->log);
    write_file("trace", options_.trace, trace_text(logs, ::getpid()));
  } catch (const std::exception& failure) {  // no memory for the text
    base::log_line(base::LogLevel::kError, "the trace is not written: {}", failure.what());
  }
}

std::vector<span_statistics> Scheduler::spans() const {
  // By text: one name may lie at several addresses.
  std::map<std::tuple<std::string, std::string, std::string>, WorkerLog::Sum> sums;
  for (const auto& worker : workers_) {
    for (const auto& [key, sum] : worker->log.sums()) {
      const auto& [category, name, place] = key;
      WorkerLog::Sum& all = sums[{category, name, place_name(*worker, place)}];
      all.times += sum.times;
      all.time_ns += sum.time_ns;
    }
  }
  std::vector<span_statistics> out;
  for (const auto& [key, sum] : sums) {
    const auto& [category, name, place] = key;
    out.push_back({category, name, place, sum.times, sum.time_ns});
  }
  return out;
}

[[gnu::noinline]] void run_watched(Worker& worker, Task* task, bool run) {
  if (worker.errands != nullptr) worker.errands->attend_between_tasks();
  if (!worker.traces && !worker.measures) return task->execute(task, run);
  OpenSpan span{};
  span.category = kTask;
  span.name = task->result != nullptr ? "future" : "task";
  open(worker, span);
  task->execute(task, run);
  Worker& last = *this_worker();  // it may have moved
  const std::int64_t time_ns = close(last, span);
  if (!last.measures) return;
  last.at[span.place].run.add(1);
  last.at[span.place].time_ns.add(time_ns - span.inner_ns);
  OpenSpan* around = last.open;
  while (around != nullptr && around->category != kTask) around = around->outer;
  if (around != nullptr) around->inner_ns += time_ns;
}

// A strand stops, or goes on: its spans are told of in slices.
void pause_spans(Worker& worker) {
  const std::int64_t now_ns = os::monotonic_now();
  for (OpenSpan* span = worker.open; span != nullptr; span = span->outer) {
    if (worker.traces) emit_slice(worker, *span, now_ns);
    span->earlier_ns += now_ns - span->began_ns;
  }
}
void resume_spans(Worker& worker) {
  const std::int64_t now_ns = os::monotonic_now();
  for (OpenSpan* span = worker.open; span != nullptr; span = span->outer) span->began_ns = now_ns;
}

void open_span(OpenSpan& span, const char* category, const char* name) {
  Worker& worker = worker_of_task();
  span.category = category;
  span.name = name;
  span.counts = true;
  open(worker, span);
}
void close_span(OpenSpan& span) noexcept {
  Worker& worker = *this_worker();
  const std::int64_t time_ns = close(worker, span);
  if (span.counts) worker.log.add({span.category, span.name, span.place}, time_ns);
}

}  // namespace detail

namespace {

void emit(event_kind kind, const char* name, double value) {
  detail::Worker& worker = detail::worker_of_task();
  if (!worker.traces) return;
  worker.scheduler->emit(worker, {.kind = kind,
                                  .category = "user",
                                  .name = name,
                                  .worker = worker.id,
                                  .place = worker.scheduler->place_name(worker, worker.here),
                                  .begin_ns = os::monotonic_now(),
                                  .value = value});
}

}  // namespace

void mark(const char* name) { emit(event_kind::mark, name, 0); }
void count(const char* name, double value) { emit(event_kind::counter, name, value); }
std::vector<span_statistics> runtime::spans() const { return scheduler_->spans(); }
void runtime::write_trace() const { scheduler_->write_trace(); }

}  // namespace amasia::tasks
