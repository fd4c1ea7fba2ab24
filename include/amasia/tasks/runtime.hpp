// SPDX-License-Identifier: Apache-2.0
// The workers. Included by <amasia/tasks.hpp>.
#pragma once

#include "amasia/tasks.hpp"
#include "amasia/tasks/places.hpp"
#include "amasia/tasks/statistics.hpp"
#include "amasia/tasks/tracing.hpp"

namespace amasia::tasks {

struct options {
  // 0: as many as the platform file has or, without one, as the process may use cores. At most as
  // many as the file has, or 1024 (std::runtime_error, std::invalid_argument).
  unsigned workers = 0;
  // A file as `amasia machine` writes it (docs/platform.md): what places there are, and where
  // workers look for tasks. "": the one that the variable AMASIA_TASKS_PLATFORM names, if any.
  // What is wrong with it is thrown as std::runtime_error with file, line and field.
  std::string platform = {};
  // Where to write what each worker did when (tracing.hpp), at the runtime's end; "%p" in the name
  // stands for the process. "": the file that the variable AMASIA_TASKS_TRACE names, if any.
  std::string trace = {};
  // Where to write what was counted (statistics.hpp), at the runtime's end, with each task timed:
  // some 50 ns each. "-": as text to the standard error; else a file of JSON, "%p" as above. "":
  // what the variable AMASIA_TASKS_STATISTICS says, if anything.
  std::string statistics = {};
  // Gets each event of the trace when it is over, on the thread of its worker, several at once.
  // Must not throw, nor wait for tasks.
  std::function<void(const trace_event& event)> on_event = {};
  // Of a task, from its first wait or call on; 16 KiB to 64 GiB, std::invalid_argument else. Memory
  // is taken where it is used. A task that needs more ends the program by SIGSEGV.
  std::size_t stack_bytes = 256 * 1024;
  // When all workers sleep and tasks wait, which only another thread could end: says who waits for
  // what, and calls on_deadlock or, if there is none, aborts. In builds without NDEBUG.
#ifdef NDEBUG
  bool detect_deadlock = false;
#else
  bool detect_deadlock = true;
#endif
  std::function<void(const std::string& report)> on_deadlock = {};
};

class module;
namespace detail {
class Scheduler;
}

// A set of workers: threads that live as long as it does, and the thread that calls run().
class AMASIA_TASKS_API runtime {
 public:
  explicit runtime(options chosen = {});
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // The caller's thread is a worker until the body and all tasks that were created in it are over.
  // Returns what the body returned; throws as finish() does. One call at a time; not in a task.
  template <typename Body>
  auto run(Body&& body, const where& at = where::current()) {
    using T = std::invoke_result_t<Body&>;
    if constexpr (std::is_void_v<T>) {
      run_root([&] {
        finish(
            [&] {
              detail::enter_run();
              body();
            },
            at);
      });
    } else {
      std::optional<T> result;
      run_root([&] {
        finish(
            [&] {
              detail::enter_run();
              result.emplace(body());
            },
            at);
      });
      return std::move(*result);
    }
  }

  // Makes a module (<amasia/module.h>) work with this runtime: initialises and finalises it. Not
  // during run(); with one attached, run() is only for the thread that attached it.
  void attach(module& added);
  void detach(module& attached) noexcept;

  // Any thread, at any time; exact when nothing runs. Of places: none before the first run().
  std::vector<worker_statistics> statistics() const;
  std::vector<place_statistics> statistics_of_places() const;
  std::vector<module_statistics> statistics_of_modules() const;
  // All of it, and spans: tables for people, an object of JSON for programs.
  std::string statistics_text() const;
  std::string statistics_json() const;

  // How often and how long spans were, by category, name and place. Any thread, at any time; those
  // that are still open are not in it.
  std::vector<span_statistics> spans() const;
  // What the runtime's end writes, if options::trace names a file: for programs that do not come to
  // that end. When nothing runs.
  void write_trace() const;

  // The graph of places. Any thread.
  std::vector<place> places() const;
  std::vector<place> places(place_type type) const;
  // std::out_of_range with the names that there are, if there is none of that name.
  place find_place(std::string_view name) const;

  // For modules, before the first run(), else std::logic_error.
  // The place, added unless the graph has one of that name already, which must be of that type:
  // std::logic_error else.
  place add_place(const place_description& description);
  // Copies from places of the one type to places of the other; the last one told of counts.
  void copies_by(place_type to, place_type from, copy_function copy);
  void memory_by(place_type type, memory_functions functions);

 private:
  void run_root(const std::function<void()>& root);
  std::unique_ptr<detail::Scheduler> scheduler_;
};

// With workers of its own, for one call.
template <typename Body>
auto run(Body&& body, const where& at = where::current()) {
  runtime once;
  return once.run(std::forward<Body>(body), at);
}

}  // namespace amasia::tasks
