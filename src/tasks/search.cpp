// SPDX-License-Identifier: Apache-2.0
// Where workers put tasks and look for them, and when they sleep.
#include <algorithm>

#include "tasks/patience.hpp"
#include "tasks/scheduler.hpp"

namespace amasia::tasks::detail {
namespace {

// A worker that finds nothing looks again and again, at first after few pauses (of some 10 ns), ...
constexpr Nanos kEagerNs = 5'000;
constexpr std::uint32_t kPauses = 8;
// ... then less often, as each look takes the lines of the busy ones from them. It does not give
// its core to others in between: it would have it back much later, and nobody wakes it. But to one
// whose tasks it looks for it does: that one would make none meanwhile.
constexpr std::uint32_t kLongPauses = 200;
constexpr std::uint32_t kLooksPerTurn = 61;  // at its own deques, to one at the lines of its places

void pause(std::uint32_t times) {
  for (std::uint32_t n = 0; n < times; ++n) os::pause_core();
}

}  // namespace

Task* Scheduler::next_task(Worker& worker, Participation& own) {
  // Acquire: run_root() goes on with what the root task, perhaps on another worker, has written.
  if (worker.attention.load(std::memory_order_acquire) != 0) [[unlikely]] {
    if (Task* const task = attend(worker)) return task;
    if ((worker.attention.load(std::memory_order_acquire) & kGoHome) != 0) return nullptr;
  }
  if (++worker.looks >= kLooksPerTurn) {
    worker.looks = 0;
    if (Task* const task = take_waiting(worker)) return task;
  }
  if (!worker.pushed_elsewhere) [[likely]] {
    if (Task* const task = worker.deque.pop()) return task;
  } else if (Task* const task = pop(worker)) {
    return task;
  }
  return search(worker, own);
}

// What others want it to look at first; nullptr: nothing, or to go home.
[[gnu::noinline]] Task* Scheduler::attend(Worker& worker) {
  const std::uint32_t bits = worker.attention.fetch_and(kGoHome, std::memory_order_acq_rel);
  if ((bits & kRoot) != 0) {
    if ((bits & kNarrow) != 0) worker.attention.fetch_or(kNarrow, std::memory_order_relaxed);
    return std::exchange(worker.root, nullptr);
  }
  if ((bits & kNarrow) == 0) return nullptr;
  for (PlaceRecord* const place : worker.places) {
    if (!place->narrow) continue;
    Task* task = place->line.take();
    if (task != nullptr) {
      in_lines_.fetch_sub(1, std::memory_order_relaxed);
    } else if (contains(place->thieves, worker.id)) {
      task = steal_at(worker, *place, true);
    }
    if (task == nullptr) continue;
    worker.attention.fetch_or(kNarrow, std::memory_order_relaxed);  // perhaps there is more
    return task;
  }
  return nullptr;
}

// What the worker itself put where it looks, in the order of its pop path.
[[gnu::noinline]] Task* Scheduler::pop(Worker& worker) {
  for (const PlaceRecord* const place : worker.pop_path) {
    Deque<Task>* const deque = place->deques[worker.id].load(std::memory_order_relaxed);
    if (deque == nullptr) continue;
    if (Task* const task = deque->pop()) return task;
  }
  return nullptr;
}

[[gnu::noinline]] Task* Scheduler::search(Worker& worker, Participation& own) {
  settle(own);  // which may have made something runnable
  if (Task* const task = pop(worker)) return task;
  if (Task* const task = look_around(worker)) return task;
  worker.core.store(kNoCore, std::memory_order_relaxed);
  const Nanos began = os::monotonic_now();
  Task* found = nullptr;
  Nanos since = began;
  Patience patience;
  std::uint32_t polls = 0;
  while (found == nullptr) {
    if (stopping_.load(std::memory_order_acquire)) break;
    if (worker.attention.load(std::memory_order_acquire) != 0) [[unlikely]] {
      found = attend(worker);
      if (found != nullptr) break;
      if ((worker.attention.load(std::memory_order_acquire) & kGoHome) != 0) break;
    }
    if (worker.errands != nullptr && worker.errands->polls_any()) {
      if (++polls >= worker.errands->polls_before_rest()) {
        polls = 0;
        rest(worker);
      }
    } else if (const Nanos spent = os::monotonic_now() - since; spent < patience.search_ns()) {
      if (spent >= kEagerNs && shares_core(worker)) os::yield_core();
      pause(spent < kEagerNs ? kPauses : kLongPauses);
    } else {
      since = os::monotonic_now();
      sleep(worker, -1);
      const Nanos slept = os::monotonic_now() - since;
      since += slept;
      patience.slept(slept);
      found = pop(worker);  // on_deadlock, which was called there, may have put something
    }
    if (found == nullptr) found = look_around(worker);
  }
  worker.core.store(os::current_core(), std::memory_order_relaxed);
  const Nanos idle = os::monotonic_now() - began;
  worker.counts.idle_ns.add(idle);
  if (worker.traces) {
    emit(worker, {.category = "idle",
                  .name = "no work",
                  .worker = worker.id,
                  .begin_ns = began,
                  .duration_ns = idle});
  }
  return found;
}

Task* Scheduler::look_around(Worker& worker) {
  if (worker.errands != nullptr) {
    // Of what a poll completed it takes one itself: waking another for that would cost more.
    worker.collects = true;
    const bool done = worker.errands->attend_without_tasks();
    worker.collects = false;
    if (done) {
      Task* const task = pop(worker);
      if (!worker.deque.empty()) announce_work(worker);
      if (task != nullptr) return task;
    }
  }
  return look_elsewhere(worker);
}

// Lines and thefts in turns: a task that yields again and again must not keep its worker from work
// of others, nor the other way round.
Task* Scheduler::look_elsewhere(Worker& worker) {
  worker.steals_first = !worker.steals_first;
  Task* task = worker.steals_first ? steal(worker) : take_waiting(worker);
  if (task == nullptr) task = worker.steals_first ? take_waiting(worker) : steal(worker);
  // More where that came from: whoever woke this worker woke no other.
  if (task != nullptr && idle_.any()) pass_on(worker);
  return task;
}

bool Scheduler::has_waiting(const Worker& worker) const {
  if (in_lines_.load(std::memory_order_relaxed) == 0) return false;
  for (const PlaceRecord* const place : worker.places) {
    if (!place->line.empty()) return true;
  }
  return false;
}

// From each line in its turn, so that a task that yields at one does not hold up the others.
Task* Scheduler::take_waiting(Worker& worker) {
  if (in_lines_.load(std::memory_order_relaxed) == 0) return nullptr;
  const auto count = static_cast<std::uint32_t>(worker.places.size());
  for (std::uint32_t n = 0; n < count; ++n) {
    worker.next_line = worker.next_line + 1 < count ? worker.next_line + 1 : 0;
    if (Task* const task = worker.places[worker.next_line]->line.take()) {
      in_lines_.fetch_sub(1, std::memory_order_relaxed);
      return task;
    }
  }
  return nullptr;
}

Task* Scheduler::steal(Worker& worker) {
  for (PlaceRecord* const place : worker.steal_path) {
    if (Task* const task = steal_at(worker, *place, false)) return task;
  }
  return nullptr;
}

// Its own deque only where it does not look on its pop path.
Task* Scheduler::steal_at(Worker& worker, PlaceRecord& place, bool at_once) {
  const auto count = static_cast<std::uint32_t>(workers_.size());
  for (std::uint32_t n = 0; n < count; ++n) {
    worker.victim = worker.victim + 1 < count ? worker.victim + 1 : 0;
    const std::uint32_t victim = worker.victim;
    Deque<Task>* const deque = place.deques[victim].load(std::memory_order_acquire);
    if (deque == nullptr) continue;
    if (victim == worker.id && contains(place.owners, victim)) continue;
    if (!at_once && deque == &workers_[victim]->deque) {
      const std::int64_t lone = deque->lone();
      if (worker.left_alone[victim].leaves(lone, deque->offers(lone), os::monotonic_now())) {
        continue;
      }
    }
    const bool of_home = &place == worker.home && deque == &workers_[victim]->deque;
    Task* task = of_home && victim != worker.id ? steal_some(worker, *deque) : nullptr;
    bool lost = task == nullptr;
    while (lost) task = deque->steal(&lost);  // lost: somebody else got one
    if (task == nullptr) continue;
    if (victim != worker.id) worker.counts.stolen.add(1);
    worker.victim = victim == 0 ? count - 1 : victim - 1;  // the same one first next time
    return task;
  }
  return nullptr;
}

// Where there are many, at the worker's own home: one to run, the others into its own deque. A
// theft takes the victim's line, and its own, from the other core each time.
Task* Scheduler::steal_some(Worker& worker, Deque<Task>& from) {
  Task* taken[Deque<Task>::kMostStolen];
  const std::int64_t count = from.steal_some(taken);
  if (count == 0) return nullptr;
  // They come to this core while the first runs. The oldest is the next that it pops.
  for (std::int64_t n = count - 1; n > 0; --n) {
    os::prefetch_to_write(taken[n]);
    worker.deque.push(taken[n]);
  }
  worker.counts.stolen.add(count - 1);
  return taken[0];
}

// Whether one that has work was on this core when it began: the system may leave two there, and a
// core without any, for milliseconds after it has woken one of them.
bool Scheduler::shares_core(const Worker& worker) const {
  const int core = os::current_core();
  return core >= 0 && std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
           return other.get() != &worker && other->core.load(std::memory_order_relaxed) == core;
         });
}

// Whether anything lies where the worker would look.
bool Scheduler::sees_work(const Worker& worker) const {
  if (has_waiting(worker)) return true;
  for (const PlaceRecord* const place : worker.pop_path) {
    if (place->deque_has_work(worker.id)) return true;
  }
  for (const PlaceRecord* const place : worker.steal_path) {
    if (place->has_deque_work()) return true;
  }
  return false;
}

bool Scheduler::has_work() const {
  for (const auto& place : places_) {
    if (!place->line.empty() || (place->index != 0 && place->has_deque_work())) return true;
  }
  return false;
}

// The worker was woken, or could be, for something that it does not take: for each place where it
// sees work, one who looks there is woken. Others than those would be no help.
void Scheduler::pass_on(const Worker& worker) {
  for (const PlaceRecord* const place : worker.places) {
    if (!place->line.empty()) {
      idle_.wake_one(place->takers);
    } else if (place->index != 0 && place->has_deque_work()) {
      idle_.wake_one(place->thieves);
    }
  }
}

// Nothing was found for a while, polled modules want the core again soon, others may want it now.
void Scheduler::rest(Worker& worker) {
  const Nanos most = worker.errands->rest();
  if (most == 0) return os::yield_core();
  if (most != PollPace::kKeepOn) sleep(worker, most);
}

void Scheduler::sleep(Worker& worker, Nanos most) {
  tell_that_idle();
  idle_.announce(worker.id);
  if (has_barrier_) os::process_barrier();
  const bool found = sees_work(worker) || stopping_.load(std::memory_order_seq_cst) ||
                     worker.attention.load(std::memory_order_seq_cst) != 0 ||
                     (worker.errands != nullptr && worker.errands->has_calls());
  if (!found) {
    if (options_.detect_deadlock) look_for_deadlock();
    worker.counts.slept.add(1);
    most < 0 ? idle_.sleep(worker.id) : idle_.sleep_at_most(worker.id, most);
  }
  if (options_.detect_deadlock) stall_watch_.woke();
  if (!idle_.withdraw(worker.id) && found) pass_on(worker);
}

void Scheduler::make_runnable(Task* task) {
  Worker* const worker = this_worker();
  if (worker == nullptr || worker->scheduler != this) return put_last(task);
  push(*worker, task);
}

void Scheduler::put_last(Task* task) {
  // Read before: once it is in the line the task may be over.
  PlaceRecord& place = *places_[task->place];
  in_lines_.fetch_add(1, std::memory_order_relaxed);
  place.line.put(task);
  announce_work(place.takers);
  if (place.narrow) tell_takers(place);
}

[[gnu::noinline]] void Scheduler::push_elsewhere(Worker& worker, Task* task) {
  PlaceRecord& place = *places_[task->place];
  const bool own = contains(place.owners, worker.id);
  // In a deque here that nobody looks at it would be lost.
  if (!own && !place.has_thieves) return put_last(task);
  std::unique_ptr<Deque<Task>>& deque = worker.deques[task->place];
  if (deque == nullptr) {
    deque = std::make_unique<Deque<Task>>(16);
    place.deques[worker.id].store(deque.get(), std::memory_order_release);
    worker.pushed_elsewhere = true;
  }
  deque->push(task);
  announce_work(place.thieves);
  if (place.narrow && !own) tell_takers(place);
}

// Few serve the place: they look there before they go on with tasks of their own. A hint only; that
// they are awake is seen to by announce_work().
void Scheduler::tell_takers(const PlaceRecord& place) {
  for (std::size_t group = 0; group < place.takers.size(); ++group) {
    for (std::uint64_t rest = place.takers[group]; rest != 0; rest &= rest - 1) {
      const auto index = static_cast<std::uint32_t>(__builtin_ctzll(rest));
      workers_[group * 64 + index]->attention.fetch_or(kNarrow, std::memory_order_release);
    }
  }
}

}  // namespace amasia::tasks::detail
