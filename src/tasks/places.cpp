// SPDX-License-Identifier: Apache-2.0
// Setting the graph of places up, and finding places in it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "tasks/scheduler.hpp"

namespace amasia::tasks {
namespace detail {
namespace {

machine::PlaceType type_in_platform(place_type type) {
  static_assert(machine::kPlaceTypes == place_type_count);
  return static_cast<machine::PlaceType>(type);
}

std::string in_words(const PlaceRecord& place) {
  return fmt::format("'{}' ({})", place.name, name_of(place.type));
}

[[noreturn]] void no_such_place(const Scheduler& scheduler, std::string_view name) {
  std::string names;
  for (const auto& place : scheduler.places()) {
    if (place->index != 0) names += (names.empty() ? "" : ", ") + place->name;
  }
  throw std::out_of_range(fmt::format("there is no place '{}'; there are {}", name, names));
}

}  // namespace

options completed(options chosen) {
  // Less is not enough for a task that throws or prints.
  constexpr std::size_t kLeast = std::size_t{16} << 10, kMost = std::size_t{64} << 30;
  if (chosen.stack_bytes < kLeast || chosen.stack_bytes > kMost) {
    throw std::invalid_argument(fmt::format("options::stack_bytes is {} (it may be {} to {})",
                                            chosen.stack_bytes, kLeast, kMost));
  }
  base::Options from_environment;
  const Status parsed = base::parse_environment(environ, from_environment);
  if (!parsed.ok()) throw std::runtime_error(parsed.error().message);
  if (chosen.platform.empty()) chosen.platform = from_environment.tasks_platform;
  if (chosen.trace.empty()) chosen.trace = from_environment.tasks_trace;
  if (chosen.statistics.empty()) chosen.statistics = from_environment.tasks_statistics;
  return chosen;
}

machine::Platform chosen_platform(const options& chosen) {
  const std::string& file = chosen.platform;
  if (file.empty()) {
    constexpr unsigned kMost = machine::kMostWorkers;
    const unsigned wanted = chosen.workers;
    if (wanted > kMost) {
      throw std::invalid_argument(
          fmt::format("options::workers is {} (it may be at most {})", wanted, kMost));
    }
    const unsigned cores = std::clamp(os::allowed_core_count(), 1u, kMost);
    return machine::plain_platform(wanted != 0 ? wanted : cores);
  }
  auto loaded = machine::load_platform(file);
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  machine::Platform platform = std::move(loaded).value();
  if (chosen.workers > platform.workers.size()) {
    throw std::runtime_error(fmt::format(
        "{} workers are asked for, and the platform file {} has {}: ask for at most that many",
        chosen.workers, file, platform.workers.size()));
  }
  if (chosen.workers != 0) platform.workers.resize(chosen.workers);
  return platform;
}

void Scheduler::set_up_places() {
  const auto add = [this](const machine::PlatformPlace& from) {
    auto made = std::make_unique<PlaceRecord>();
    made->scheduler = this;
    made->index = static_cast<std::uint32_t>(places_.size());
    made->name = from.name;
    made->type = static_cast<place_type>(from.type);
    made->number = from.number;
    made->bytes = from.bytes;
    places_.push_back(std::move(made));
  };
  add({});  // of no place
  for (const machine::PlatformPlace& place : platform_.places) add(place);
  for (const auto& [one, other] : platform_.edges) {
    places_[one + 1]->neighbours.push_back(other + 1);
    places_[other + 1]->neighbours.push_back(one + 1);
  }
}

PlaceRecord& Scheduler::add_place(const place_description& description) {
  if (started_) throw std::logic_error("places are added before the first run()");
  const std::uint32_t known = platform_.find(description.name);
  if (known < platform_.places.size()) {
    PlaceRecord& there = *places_[known + 1];
    if (there.type == description.type) return there;
    throw std::logic_error(
        fmt::format("the place {} is there already; a module wants one of type {} by that name",
                    in_words(there), name_of(description.type)));
  }
  platform_.places.push_back({.name = description.name,
                              .type = type_in_platform(description.type),
                              .number = description.number,
                              .bytes = description.bytes});
  const std::size_t edges = platform_.edges.size();
  for (const std::string& name : description.next_to) {
    const std::uint32_t other = platform_.find(name);
    if (other < known) platform_.edges.emplace_back(other, known);
  }
  for (machine::PlatformWorker& worker : platform_.workers) {
    if (description.without_workers) break;
    worker.pop.push_back(known);
    worker.steal.push_back(known);
    if (description.first_worker_only) break;
  }
  if (const std::string flaw = machine::flaw_of(platform_); !flaw.empty()) {
    throw std::logic_error("a module's place does not fit: " + flaw);
  }
  auto made = std::make_unique<PlaceRecord>();
  made->scheduler = this;
  made->index = known + 1;
  made->name = description.name;
  made->type = description.type;
  made->number = description.number;
  made->bytes = description.bytes;
  places_.push_back(std::move(made));
  for (std::size_t edge = edges; edge < platform_.edges.size(); ++edge) {
    const std::uint32_t other = platform_.edges[edge].first;
    places_[known + 1]->neighbours.push_back(other + 1);
    places_[other + 1]->neighbours.push_back(known + 1);
  }
  return *places_[known + 1];
}

void Scheduler::set_up_paths() {
  const std::size_t groups = (workers_.size() + 63) / 64;
  for (auto& place : places_) {
    place->workers = static_cast<std::uint32_t>(workers_.size());
    place->deques = std::make_unique<std::atomic<Deque<Task>*>[]>(workers_.size());
    place->owners.resize(groups);
    place->thieves.resize(groups);
    place->takers.resize(groups);
  }
  for (auto& worker : workers_) {
    const machine::PlatformWorker& paths = platform_.workers[worker->id];
    worker->deques.resize(places_.size());
    worker->left_alone.resize(workers_.size());
    worker->at = std::make_unique<PlaceCounts[]>(places_.size());
    worker->places.push_back(places_[0].get());
    insert(places_[0]->takers, worker->id);
    const auto take_in = [&](std::uint32_t index) {
      PlaceRecord* const place = places_[index + 1].get();
      if (!contains(place->takers, worker->id)) worker->places.push_back(place);
      insert(place->takers, worker->id);
      return place;
    };
    for (const std::uint32_t index : paths.pop) {
      worker->pop_path.push_back(take_in(index));
      insert(worker->pop_path.back()->owners, worker->id);
    }
    for (const std::uint32_t index : paths.steal) {
      worker->steal_path.push_back(take_in(index));
      insert(worker->steal_path.back()->thieves, worker->id);
      worker->steal_path.back()->has_thieves = true;
    }
    worker->home = places_[paths.home + 1].get();
    worker->home->deques[worker->id].store(&worker->deque, std::memory_order_relaxed);
  }
  for (auto& place : places_) place->narrow = place->takers != places_[0]->takers;
  set_up_.store(true, std::memory_order_release);  // partner: statistics_of_places()
}

const PlaceRecord& Scheduler::place_named(std::string_view name) const {
  const std::uint32_t index = platform_.find(name);
  if (index == platform_.places.size()) no_such_place(*this, name);
  return *places_[index + 1];
}

std::vector<unsigned> Scheduler::workers_at(const PlaceRecord& place) const {
  std::vector<unsigned> all;
  for (std::uint32_t id = 0; id < platform_.workers.size(); ++id) {
    const machine::PlatformWorker& worker = platform_.workers[id];
    const auto has = [&](const std::vector<std::uint32_t>& path) {
      return std::find(path.begin(), path.end(), place.index - 1) != path.end();
    };
    if (has(worker.pop) || has(worker.steal)) all.push_back(id);
  }
  return all;
}

void must_take_tasks(place at) {
  Worker& worker = worker_of_task();
  if (!at.valid()) throw std::logic_error("a task is to be created at an invalid place");
  const PlaceRecord& record = *at.record();
  if (record.scheduler != worker.scheduler) {
    throw std::logic_error(
        fmt::format("the place {} belongs to another runtime", in_words(record)));
  }
  const auto none = [](std::uint64_t word) { return word == 0; };
  if (std::all_of(record.takers.begin(), record.takers.end(), none)) {
    throw std::logic_error(fmt::format(
        "no worker has the place {} on a path: its tasks would never run{}", in_words(record),
        record.type == place_type::node ? " (amasia::nodes::async_at() sends tasks there)" : ""));
  }
}

void spawn_awaiting_at(AwaitingTask* task, place at) {
  task->place = at.record()->index;
  worker_of_task().at[task->place].created.add(1);
  spawn_awaiting(task);
}

void spawn_background_at(Task* task, place at) {
  Worker& worker = worker_of_task();
  Scope* const scope = worker.scheduler->background();
  task->place = at.record()->index;
  task->scope = scope;
  // The caller is outstanding in that scope, directly or not: it cannot end before.
  static_cast<void>(scope->count.add(1));
  worker.counts.spawned.add(1);
  worker.at[task->place].created.add(1);
  worker.scheduler->push(worker, task);
}

void enter_run() {
  Worker& worker = worker_of_task();
  worker.scheduler->set_background(worker.current->scope);
}

namespace {

std::vector<place> places_of(const Scheduler& scheduler) {
  std::vector<place> all;
  for (const auto& record : scheduler.places()) {
    if (record->index != 0) all.emplace_back(record.get());
  }
  return all;
}

std::vector<place> places_of(const Scheduler& scheduler, place_type type) {
  std::vector<place> all = places_of(scheduler);
  std::erase_if(all, [type](place one) { return one.type() != type; });
  return all;
}

}  // namespace
}  // namespace detail

const char* name_of(place_type type) noexcept {
  return machine::name_of(detail::type_in_platform(type));
}

const std::string& place::name() const noexcept { return record_->name; }
place_type place::type() const noexcept { return record_->type; }
int place::number() const noexcept { return record_->number; }
std::uint64_t place::bytes() const noexcept { return record_->bytes; }

std::vector<place> place::neighbours() const {
  std::vector<place> all;
  for (const std::uint32_t index : record_->neighbours) {
    all.emplace_back(record_->scheduler->places()[index].get());
  }
  return all;
}

std::vector<unsigned> place::workers() const { return record_->scheduler->workers_at(*record_); }

place here() {
  const detail::Worker& worker = detail::worker_of_task();
  const bool at_home = worker.here == 0;
  return place(at_home ? worker.home : worker.scheduler->places()[worker.here].get());
}
std::vector<place> places() { return detail::places_of(*detail::worker_of_task().scheduler); }
std::vector<place> places(place_type type) {
  return detail::places_of(*detail::worker_of_task().scheduler, type);
}
place find_place(std::string_view name) {
  return place(&detail::worker_of_task().scheduler->place_named(name));
}

std::vector<place> runtime::places() const { return detail::places_of(*scheduler_); }
std::vector<place> runtime::places(place_type type) const {
  return detail::places_of(*scheduler_, type);
}
place runtime::find_place(std::string_view name) const {
  return place(&scheduler_->place_named(name));
}
place runtime::add_place(const place_description& description) {
  return place(&scheduler_->add_place(description));
}
void runtime::copies_by(place_type to, place_type from, copy_function copy) {
  if (scheduler_->started()) throw std::logic_error("copies are registered before the first run()");
  scheduler_->copiers().copies[static_cast<std::size_t>(to)][static_cast<std::size_t>(from)] =
      std::move(copy);
}
void runtime::memory_by(place_type type, memory_functions functions) {
  if (scheduler_->started()) throw std::logic_error("memory is registered before the first run()");
  scheduler_->copiers().memories[static_cast<std::size_t>(type)] = std::move(functions);
}

}  // namespace amasia::tasks
