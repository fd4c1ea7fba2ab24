// SPDX-License-Identifier: Apache-2.0
#include "tasks/scheduler.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>

namespace amasia::tasks::detail {
namespace {

thread_local Worker* t_worker = nullptr;

constexpr std::uint32_t kMostSpares = 16;
constexpr std::uint32_t kSearches = 24;      // before a worker goes to sleep
constexpr std::uint32_t kLooksPerTurn = 61;  // at its own deque, to one at the line for all

// The resume task is a member of its strand: found by its offset.
Strand* strand_of(Task* resume) {
  return reinterpret_cast<Strand*>(reinterpret_cast<char*>(resume) - offsetof(Strand, resume));
}

unsigned chosen_workers(unsigned wanted) {
  return wanted != 0 ? wanted : std::max(1u, os::allowed_core_count());
}

}  // namespace

[[gnu::noinline]] Worker* this_worker() noexcept {
  Worker* worker = t_worker;
  asm volatile("" : "+r"(worker)::"memory");
  return worker;
}

WaiterList<Task>& waiters_of(FutureState& state) noexcept {
  static_assert(sizeof(WaiterList<Task>) == sizeof(state.waiters));
  return *std::launder(reinterpret_cast<WaiterList<Task>*>(state.waiters));
}

Scheduler::Scheduler(options chosen)
    : options_(std::move(chosen)),
      has_barrier_(os::register_process_barrier()),
      stacks_(options_.stack_bytes),
      idle_(chosen_workers(options_.workers)),
      all_((chosen_workers(options_.workers) + 63) / 64, ~std::uint64_t{0}),
      base_(this, nullptr, {}) {
  const unsigned count = chosen_workers(options_.workers);
  for (unsigned id = 0; id < count; ++id) workers_.push_back(std::make_unique<Worker>(this, id));
  for (unsigned id = 1; id < count; ++id) {
    auto started = os::Thread::start(&Scheduler::enter_thread, workers_[id].get());
    if (!started.ok()) {
      stopping_.store(true, std::memory_order_seq_cst);
      for (auto& worker : workers_) idle_.wake(worker->id);
      throw std::runtime_error(started.error().message);
    }
    workers_[id]->thread = std::move(started).value();
  }
}

Scheduler::~Scheduler() {
  AMASIA_CHECK(!busy_.load(), "a runtime is destroyed while it runs");
  stopping_.store(true, std::memory_order_seq_cst);
  for (auto& worker : workers_) idle_.wake(worker->id);
  for (auto& worker : workers_) worker->thread.join();
}

void Scheduler::enter_thread(void* argument) {
  auto& worker = *static_cast<Worker*>(argument);
  os::set_thread_name("amasia-tasks");
  worker.scheduler->serve(worker);
}

// The calling thread is the worker until it is sent home.
void Scheduler::serve(Worker& worker) {
  t_worker = &worker;
  worker.home = std::make_unique<Fiber>();
  worker.strand = take_strand(worker);
  worker.home->switch_to(worker.strand->fiber);
  t_worker = nullptr;
}

void Scheduler::run_root(const std::function<void()>& root) {
  if (this_worker() != nullptr) throw std::logic_error("run() was called in a task");
  check_thread();
  if (busy_.exchange(true)) throw std::logic_error("run() was called while it runs");
  struct Root : Task {
    const std::function<void()>* body;
    std::exception_ptr error;
    Worker* first;
  } task;
  task.body = &root;
  task.first = workers_[0].get();
  task.scope = &base_;
  task.execute = [](Task* self, bool) {
    auto& all = *static_cast<Root*>(self);
    try {
      (*all.body)();
    } catch (...) {
      all.error = std::current_exception();
    }
    Worker& first = *all.first;
    first.go_home.store(true, std::memory_order_seq_cst);  // the frame of `all` may end now
    first.scheduler->idle_.wake(0);
  };
  Worker& first = *workers_[0];
  first.go_home.store(false);
  put_last(&task);
  serve(first);
  busy_.store(false);
  if (task.error != nullptr) std::rethrow_exception(task.error);
}

std::vector<worker_statistics> Scheduler::statistics() const {
  std::vector<worker_statistics> all;
  for (const auto& worker : workers_) {
    const WorkerCounts& counts = worker->counts;
    const auto times = [](const Counter& counter) {
      return static_cast<std::uint64_t>(counter.value());
    };
    all.push_back({.run = times(counts.run),
                   .spawned = times(counts.spawned),
                   .stolen = times(counts.stolen),
                   .suspended = times(counts.suspended),
                   .slept = times(counts.slept),
                   .idle_ns = counts.idle_ns.value()});
  }
  return all;
}

void Scheduler::enter_strand(void* argument) {
  static_cast<void>(argument);
  this_worker()->scheduler->loop();
}

// Of every strand, for ever. After each switch the worker may be another.
void Scheduler::loop() {
  perform_after_switch();
  Participation own;
  for (;;) {
    Worker* const worker = this_worker();
    worker->current = &own;
    Task* const task = next_task(*worker, own);
    if (task == nullptr || task->kind == Kind::kStrand) {
      settle(own);
      Strand* const self = worker->strand;
      give_strand(*worker, self);
      if (task == nullptr) {
        worker->strand = nullptr;
        self->fiber.switch_to(*worker->home);
      } else {
        Strand* const strand = strand_of(task);
        worker->strand = strand;
        self->fiber.switch_to(strand->fiber);
      }
      perform_after_switch();
      continue;
    }
    if (task->scope != own.scope) {
      settle(own);
      task->scope->count.enter();
      own = {task->scope, 0};
    }
    execute(*worker, task);
    --own.net;
  }
}

void Scheduler::suspend(void (*act)(void* what, Strand* left), void* what) {
  Worker* worker = this_worker();
  if (worker->errands != nullptr) [[unlikely]]
    worker->errands->attend_between_tasks();
  Participation* const current = worker->current;
  Strand* const self = worker->strand;
  // Straight to a strand that can go on, if one is next: no loop in between.
  Task* const top = worker->deque.pop();
  const bool direct = top != nullptr && top->kind == Kind::kStrand;
  if (top != nullptr && !direct) worker->deque.push(top);
  Strand* const next = direct ? strand_of(top) : take_strand(*worker);
  worker->counts.suspended.add(1);
  worker->after = {act, what, self};
  worker->strand = next;
  self->fiber.switch_to(next->fiber);
  this_worker()->current = current;
  perform_after_switch();
}

void Scheduler::perform_after_switch() {
  Worker* const worker = this_worker();
  const AfterSwitch after = std::exchange(worker->after, {});
  if (after.act != nullptr) after.act(after.what, after.left);
}

Strand* Scheduler::take_strand(Worker& worker) {
  if (Strand* const spare = worker.spares) {
    worker.spares = spare->next;
    --worker.spare_count;
    return spare;
  }
  {
    const os::MutexLock lock(spares_mutex_);
    if (Strand* const spare = spares_) {
      spares_ = spare->next;
      return spare;
    }
  }
  const auto stack = stacks_.make();
  if (!stack.ok()) {
    // Nobody could go on: the waiting strand has left its worker nothing to run on.
    base::log_line(base::LogLevel::kError, "{}", stack.error().message);
    std::abort();
  }
  auto made = std::make_unique<Strand>(stack.value(), stacks_.usable_bytes(), &enter_strand);
  Strand* const strand = made.get();
  const os::MutexLock lock(spares_mutex_);
  strands_.push_back(std::move(made));
  return strand;
}

// Before it is left for good by its worker, which is the only one to take it from there; to the
// spares of all it goes later, when another is given.
void Scheduler::give_strand(Worker& worker, Strand* strand) {
  if (worker.spare_count >= kMostSpares) {
    const os::MutexLock lock(spares_mutex_);
    while (worker.spare_count > kMostSpares / 2) {
      Strand* const spare = worker.spares;
      worker.spares = spare->next;
      --worker.spare_count;
      spare->next = spares_;
      spares_ = spare;
    }
  }
  strand->next = worker.spares;
  worker.spares = strand;
  ++worker.spare_count;
}

Task* Scheduler::next_task(Worker& worker, Participation& own) {
  // Acquire: run_root() goes on with what the root task, perhaps on another worker, has written.
  if (worker.go_home.load(std::memory_order_acquire)) [[unlikely]]
    return nullptr;
  if (++worker.looks >= kLooksPerTurn) {
    worker.looks = 0;
    if (Task* const task = take_waiting()) return task;
  }
  if (Task* const task = worker.deque.pop()) return task;
  return search(worker, own);
}

[[gnu::noinline]] Task* Scheduler::search(Worker& worker, Participation& own) {
  settle(own);  // which may have made something runnable
  if (Task* const task = worker.deque.pop()) return task;
  if (Task* const task = look_around(worker)) return task;
  const Nanos began = os::monotonic_now();
  Task* found = nullptr;
  for (std::uint32_t round = 1; found == nullptr; ++round) {
    if (stopping_.load(std::memory_order_acquire) ||
        worker.go_home.load(std::memory_order_acquire)) {
      break;
    }
    if (round % kSearches == 0) {
      rest(worker);
    } else {
      for (std::uint32_t pause = 0; pause < 8; ++pause) os::pause_core();
    }
    found = look_around(worker);
  }
  worker.counts.idle_ns.add(os::monotonic_now() - began);
  return found;
}

Task* Scheduler::look_around(Worker& worker) {
  if (worker.errands != nullptr && worker.errands->attend_without_tasks()) {
    if (Task* const task = worker.deque.pop()) return task;
  }
  return look_elsewhere(worker);
}

Task* Scheduler::look_elsewhere(Worker& worker) {
  Task* task = take_waiting();
  if (task == nullptr) task = steal(worker);
  // More where that came from: whoever woke this worker woke no other.
  if (task != nullptr && idle_.any() && has_work()) idle_.wake_one(all_);
  return task;
}

Task* Scheduler::take_waiting() {
  if (!has_waiting()) return nullptr;
  const os::MutexLock lock(line_mutex_);
  Task* const task = line_first_;
  if (task == nullptr) return nullptr;
  line_first_ = task->next;
  if (line_first_ == nullptr) line_last_ = nullptr;
  line_length_.fetch_sub(1, std::memory_order_relaxed);
  return task;
}

void Scheduler::put_last(Task* task) {
  {
    const os::MutexLock lock(line_mutex_);
    task->next = nullptr;
    if (line_last_ == nullptr) {
      line_first_ = task;
    } else {
      line_last_->next = task;
    }
    line_last_ = task;
    line_length_.fetch_add(1, std::memory_order_relaxed);
  }
  announce_work();
}

Task* Scheduler::steal(Worker& worker) {
  const auto count = static_cast<std::uint32_t>(workers_.size());
  for (std::uint32_t n = 0; n < count; ++n) {
    worker.victim = worker.victim + 1 < count ? worker.victim + 1 : 0;
    Worker& victim = *workers_[worker.victim];
    if (&victim == &worker) continue;
    bool lost = true;
    while (lost) {  // somebody else got one each time
      if (Task* const task = victim.deque.steal(&lost)) {
        worker.counts.stolen.add(1);
        worker.victim = victim.id == 0 ? count - 1 : victim.id - 1;  // the same one first next time
        return task;
      }
    }
  }
  return nullptr;
}

bool Scheduler::has_work() const {
  if (has_waiting()) return true;
  for (const auto& worker : workers_) {
    if (!worker->deque.empty()) return true;
  }
  return false;
}

// Nothing was found for a while. Polled modules want the core again soon, others may want it now.
void Scheduler::rest(Worker& worker) {
  const Nanos most = worker.errands != nullptr ? worker.errands->rest() : -1;
  most == 0 ? os::yield_core() : sleep(worker, most);
}

void Scheduler::sleep(Worker& worker, Nanos most) {
  idle_.announce(worker.id);
  if (has_barrier_) os::process_barrier();
  const bool found = has_work() || stopping_.load(std::memory_order_seq_cst) ||
                     worker.go_home.load(std::memory_order_seq_cst) ||
                     (worker.errands != nullptr && worker.errands->has_calls());
  if (!found) {
    if (options_.detect_deadlock) report_deadlock_if_any();
    worker.counts.slept.add(1);
    most < 0 ? idle_.sleep(worker.id) : idle_.sleep_at_most(worker.id, most);
  }
  if (!idle_.withdraw(worker.id) && found) idle_.wake_one(all_);
}

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
    if (has_work() || workers_[0]->go_home.load()) return;
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

void Scheduler::make_runnable(Task* task) {
  Worker* const worker = this_worker();
  if (worker == nullptr || worker->scheduler != this) return put_last(task);
  worker->deque.push(task);
  announce_work();
}

void Scheduler::strong_fence() {
  std::atomic<int> any{0};
  any.exchange(1, std::memory_order_seq_cst);
}

void settle(Participation& own) {
  if (own.scope == nullptr) return;
  Scope* const scope = std::exchange(own.scope, nullptr);
  if (scope->count.leave(std::exchange(own.net, 0))) end_scope(scope);
}

void end_scope(Scope* scope) {
  if (scope->waiting != nullptr) return scope->scheduler->make_runnable(scope->waiting);
  FutureState* const state = scope->ended;
  state->error = std::move(scope->error);
  Scope* const parent = scope->parent;
  delete scope;
  make_ready(*state);
  drop(state);
  if (parent->count.add(-1)) end_scope(parent);
}

}  // namespace amasia::tasks::detail
