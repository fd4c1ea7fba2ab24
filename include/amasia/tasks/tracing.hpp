// SPDX-License-Identifier: Apache-2.0
// What tasks say of themselves, for statistics and traces. Included by <amasia/tasks.hpp>.
//
// With options::trace, or the variable AMASIA_TASKS_TRACE, a runtime writes what each worker did
// when, as JSON for Perfetto (ui.perfetto.dev) or chrome://tracing: every task, in slices where it
// was suspended, when workers had nothing to do, and the spans and marks of programs and modules.
// With options::on_event, each of these is handed to a function as well, or instead.
#pragma once

#include <cstdint>
#include <string>

#include "amasia/tasks.hpp"

namespace amasia::tasks {

enum class event_kind : std::uint8_t {
  slice,    // of a task, a span, or time without work
  mark,     // a moment
  counter,  // a value from now on
};

// Texts stay valid while the program runs, if those do that were given to spans and marks.
struct trace_event {
  event_kind kind = event_kind::slice;
  const char* category = "";  // "task", "idle", or a span's
  const char* name = "";
  unsigned worker = 0;
  const char* place = "";        // of the task; "" for time without work
  std::int64_t begin_ns = 0;     // of the monotonic clock
  std::int64_t duration_ns = 0;  // of a slice
  double value = 0;              // of a counter
};

// How often spans of a category and name were at a place, and for how long altogether: the time
// that a worker spent in them, without that for which their task was suspended.
struct span_statistics {
  std::string category;  // of a module its name
  std::string name;
  std::string place;
  std::uint64_t times = 0;
  std::int64_t time_ns = 0;
};

namespace detail {
// A stretch of what runs on a stack, and those around it on the same stack.
struct OpenSpan {
  const char* category;
  const char* name;
  std::uint32_t place;
  bool counts;  // in span_statistics
  std::int64_t began_ns;
  std::int64_t earlier_ns;  // in slices before
  std::int64_t inner_ns;    // of a task: in other tasks that ran on its stack
  OpenSpan* outer;
};
AMASIA_TASKS_API void open_span(OpenSpan& span, const char* category, const char* name);
AMASIA_TASKS_API void close_span(OpenSpan& span) noexcept;
}  // namespace detail

// From here to the end of the block, in a task, across waits too; counted always (runtime::spans),
// and part of a trace if there is one. Some 100 ns. The texts are kept by address: literals.
class span {
 public:
  span(const char* category, const char* name) { detail::open_span(open_, category, name); }
  explicit span(const char* name) : span("user", name) {}
  span(const span&) = delete;
  span& operator=(const span&) = delete;
  ~span() { detail::close_span(open_); }

 private:
  detail::OpenSpan open_;
};

// A moment, and a value over time, in a task; nothing where there is no trace. Literals as above.
AMASIA_TASKS_API void mark(const char* name);
AMASIA_TASKS_API void count(const char* name, double value);

}  // namespace amasia::tasks
