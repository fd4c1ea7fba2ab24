// SPDX-License-Identifier: Apache-2.0
#include "tasks/statistics.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tasks/scheduler.hpp"

namespace amasia::tasks {
namespace detail {
namespace {

using base::json_text;

double milliseconds(std::int64_t nanos) { return static_cast<double>(nanos) / 1e6; }

std::uint64_t times(const Counter& counter) {
  return static_cast<std::uint64_t>(counter.value());
}

// Elements as `one` writes them, with commas.
template <typename Element, typename Write>
std::string list_of(const std::vector<Element>& all, Write one) {
  std::string out = "[";
  for (std::size_t n = 0; n < all.size(); ++n) out += (n == 0 ? "" : ",\n  ") + one(n, all[n]);
  return out + "]";
}

}  // namespace

std::string text_of(const Statistics& all) {
  std::string out = fmt::format("{:<20} {:>12} {:>12} {:>10} {:>10} {:>8} {:>12}\n", "worker",
                                "tasks run", "created", "stolen", "suspended", "slept", "idle ms");
  for (std::size_t n = 0; n < all.workers.size(); ++n) {
    const worker_statistics& one = all.workers[n];
    out += fmt::format("{:<20} {:>12} {:>12} {:>10} {:>10} {:>8} {:>12.3f}\n", n, one.run,
                       one.spawned, one.stolen, one.suspended, one.slept,
                       milliseconds(one.idle_ns));
  }
  out += fmt::format("{:<20} {:>12} {:>12} {:>10} {:>10} {:>21}\n", "place", "tasks run",
                     "time ms", "created", "copies", "bytes");
  for (const place_statistics& one : all.places) {
    out += fmt::format("{:<20} {:>12} {:>12.3f} {:>10} {:>10} {:>21}\n", one.place, one.run,
                       milliseconds(one.time_ns), one.created, one.copies, one.bytes);
  }
  if (!all.modules.empty()) {
    out += fmt::format("{:<20} {:>12} {:>12} {:>10} {:>10} {:>21}\n", "module", "operations",
                       "calls", "ms", "polls", "ms");
  }
  for (const module_statistics& one : all.modules) {
    out += fmt::format("{:<20} {:>12} {:>12} {:>10.3f} {:>10} {:>21.3f}\n", one.module,
                       one.operations, one.calls, milliseconds(one.calls_ns), one.polls,
                       milliseconds(one.polls_ns));
  }
  if (!all.spans.empty()) {
    out += fmt::format("{:<20} {:>12} {:>12} {:<30}\n", "span of", "times", "ms", "name, place");
  }
  for (const span_statistics& one : all.spans) {
    out += fmt::format("{:<20} {:>12} {:>12.3f} {}, {}\n", one.category, one.times,
                       milliseconds(one.time_ns), one.name, one.place);
  }
  return out;
}

std::string json_of(const Statistics& all) {
  const std::string workers = list_of(all.workers, [](std::size_t n, const auto& one) {
    return fmt::format("{{\"worker\":{},\"run\":{},\"created\":{},\"stolen\":{},\"suspended\":{},"
                       "\"slept\":{},\"idle_ns\":{}}}",
                       n, one.run, one.spawned, one.stolen, one.suspended, one.slept, one.idle_ns);
  });
  const std::string places = list_of(all.places, [](std::size_t, const auto& one) {
    return fmt::format("{{\"place\":{},\"created\":{},\"copies\":{},\"bytes\":{},\"run\":{},"
                       "\"time_ns\":{}}}",
                       json_text(one.place), one.created, one.copies, one.bytes, one.run,
                       one.time_ns);
  });
  const std::string modules = list_of(all.modules, [](std::size_t, const auto& one) {
    return fmt::format("{{\"module\":{},\"operations\":{},\"calls\":{},\"calls_ns\":{},"
                       "\"polls\":{},\"polls_ns\":{}}}",
                       json_text(one.module), one.operations, one.calls, one.calls_ns, one.polls,
                       one.polls_ns);
  });
  const std::string spans = list_of(all.spans, [](std::size_t, const auto& one) {
    return fmt::format("{{\"category\":{},\"name\":{},\"place\":{},\"times\":{},\"time_ns\":{}}}",
                       json_text(one.category), json_text(one.name), json_text(one.place),
                       one.times, one.time_ns);
  });
  return fmt::format("{{\"workers\":{},\n\"places\":{},\n\"modules\":{},\n\"spans\":{}}}\n",
                     workers, places, modules, spans);
}

std::vector<worker_statistics> Scheduler::statistics() const {
  std::vector<worker_statistics> all;
  for (const auto& worker : workers_) {
    const WorkerCounts& counts = worker->counts;
    all.push_back({.run = times(counts.run),
                   .spawned = times(counts.spawned),
                   .stolen = times(counts.stolen),
                   .suspended = times(counts.suspended),
                   .slept = times(counts.slept),
                   .idle_ns = counts.idle_ns.value()});
  }
  return all;
}

std::vector<place_statistics> Scheduler::statistics_of_places() const {
  if (!set_up_.load(std::memory_order_acquire)) return {};  // partner: set_up_paths()
  std::vector<place_statistics> all(places_.size());
  for (const auto& worker : workers_) {
    for (std::size_t index = 0; index < places_.size(); ++index) {
      const PlaceCounts& counts = worker->at[index];
      // Of no place: at the worker's home.
      place_statistics& sum = all[index == 0 ? worker->home->index : index];
      sum.created += times(counts.created);
      sum.copies += times(counts.copies);
      sum.bytes += times(counts.bytes);
      sum.run += times(counts.run);
      sum.time_ns += counts.time_ns.value();
    }
  }
  for (std::size_t index = 1; index < places_.size(); ++index) {
    all[index].place = places_[index]->name;
  }
  all.erase(all.begin());
  return all;
}

std::vector<module_statistics> Scheduler::statistics_of_modules() const {
  std::vector<module_statistics> all;
  const os::MutexLock lock(modules_mutex_);
  for (const auto& one : module_counts_) {
    all.push_back({.module = one->name,
                   .operations = one->operations.load(std::memory_order_relaxed),
                   .calls = times(one->calls),
                   .calls_ns = one->calls_ns.value(),
                   .polls = times(one->polls),
                   .polls_ns = one->polls_ns.value()});
  }
  return all;
}

ModuleCounts& Scheduler::counts_of(const module& of) {
  const os::MutexLock lock(modules_mutex_);
  for (const auto& one : module_counts_) {
    if (one->name == of.name()) return *one;
  }
  return *module_counts_.emplace_back(std::make_unique<ModuleCounts>(of.name()));
}

Statistics Scheduler::all_statistics() const {
  return {statistics(), statistics_of_places(), statistics_of_modules(), spans()};
}

void Scheduler::write_file(const char* what, const std::string& pattern,
                           const std::string& text) noexcept {
  const std::string path = trace_path(pattern, ::getpid());
  std::FILE* const file = std::fopen(path.c_str(), "we");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int why = errno;
  if (file != nullptr && std::fclose(file) == 0 && written) return;
  base::log_line(base::LogLevel::kError, "{}",
                 base::errno_error(why, fmt::format("cannot write the {} '{}'", what, path))
                     .message);
}

void Scheduler::write_statistics() const noexcept {
  if (options_.statistics.empty()) return;
  try {
    if (options_.statistics == "-") {
      std::fputs(text_of(all_statistics()).c_str(), stderr);
    } else {
      write_file("statistics", options_.statistics, json_of(all_statistics()));
    }
  } catch (const std::exception& failure) {  // no memory for the text
    base::log_line(base::LogLevel::kError, "the statistics are not written: {}", failure.what());
  }
}

}  // namespace detail

std::vector<worker_statistics> runtime::statistics() const { return scheduler_->statistics(); }
std::vector<place_statistics> runtime::statistics_of_places() const {
  return scheduler_->statistics_of_places();
}
std::vector<module_statistics> runtime::statistics_of_modules() const {
  return scheduler_->statistics_of_modules();
}
std::string runtime::statistics_text() const { return text_of(scheduler_->all_statistics()); }
std::string runtime::statistics_json() const { return json_of(scheduler_->all_statistics()); }

}  // namespace amasia::tasks
