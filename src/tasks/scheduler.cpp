// SPDX-License-Identifier: Apache-2.0
#include "tasks/scheduler.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>

namespace amasia::tasks::detail {
namespace {

thread_local Worker* t_worker = nullptr;

constexpr std::uint32_t kMostSpares = 16;
constexpr std::int64_t kAskAgain = -1;  // no element has this number

// The resume task is a member of its strand: found by its offset.
Strand* strand_of(Task* resume) {
  return reinterpret_cast<Strand*>(reinterpret_cast<char*>(resume) - offsetof(Strand, resume));
}

}  // namespace

[[gnu::noinline]] Worker* this_worker() noexcept {
  Worker* worker = t_worker;
  asm volatile("" : "+r"(worker)::"memory");
  return worker;
}

// Here, where the thread's worker is found without a call: the bodies of some loops take as long.
LoopTurn next_turn(bool may_divide) {
  Worker& worker = *t_worker;
  if (worker.errands != nullptr) [[unlikely]]
    worker.errands->attend_between_tasks();
  const Scope* const scope = worker.current->scope;
  const std::uint32_t& stops = worker.strand->stops;
  LoopTurn turn{LoopStep::kRunTiles, 0, 0, &worker.deque.top(), kAskAgain, &stops, stops};
  if (scope->may_stop && scope->stop_requested()) {
    turn.step = LoopStep::kStop;
  } else if (const std::int64_t oldest = worker.deque.oldest(); oldest != kNothing) {
    // Others, who request a stop, and modules are looked at before each tile.
    if (!scope->may_stop && worker.errands == nullptr) turn.top_seen = oldest;
  } else if (may_divide) {  // a loop that nobody helps with is one task, however long it is
    turn.step = LoopStep::kDivide;
    turn.worker = static_cast<std::uint16_t>(worker.id);
    turn.workers = static_cast<std::uint16_t>(worker.scheduler->worker_count());
  }
  return turn;
}

WaiterList<Task>& waiters_of(FutureState& state) noexcept {
  static_assert(sizeof(WaiterList<Task>) == sizeof(state.waiters));
  return *std::launder(reinterpret_cast<WaiterList<Task>*>(state.waiters));
}

Scheduler::Scheduler(options chosen)
    : options_(completed(std::move(chosen))),
      platform_(chosen_platform(options_)),
      has_barrier_(os::register_process_barrier()),
      stacks_(options_.stack_bytes),
      idle_(static_cast<std::uint32_t>(platform_.workers.size())),
      base_(this, nullptr, {}) {
  for (std::uint32_t id = 0; id < platform_.workers.size(); ++id) {
    workers_.push_back(std::make_unique<Worker>(this, id));
    workers_.back()->traces = !options_.trace.empty() || options_.on_event != nullptr;
    workers_.back()->measures = !options_.statistics.empty();
    workers_.back()->watched = workers_.back()->traces || workers_.back()->measures;
  }
  if (!options_.statistics.empty()) errands_.time_calls();
  set_up_places();
}

// At the first run(), so that modules can add places before: from now on workers read them.
void Scheduler::start() {
  started_ = true;
  set_up_paths();
  for (std::uint32_t id = 1; id < workers_.size(); ++id) {
    auto begun = os::Thread::start(&Scheduler::enter_thread, workers_[id].get());
    if (!begun.ok()) throw std::runtime_error(begun.error().message);
    workers_[id]->thread = std::move(begun).value();
  }
}

Scheduler::~Scheduler() {
  AMASIA_CHECK(!busy_.load(), "a runtime is destroyed while it runs");
  stopping_.store(true, std::memory_order_seq_cst);
  for (auto& worker : workers_) idle_.wake(worker->id);
  for (auto& worker : workers_) worker->thread.join();
  write_trace();
  write_statistics();
}

void Scheduler::enter_thread(void* argument) {
  auto& worker = *static_cast<Worker*>(argument);
  os::set_thread_name("amasia-tasks");
  worker.scheduler->serve(worker);
}

// The calling thread is the worker until it is sent home.
void Scheduler::serve(Worker& worker) {
  t_worker = &worker;
  worker.core.store(os::current_core(), std::memory_order_relaxed);
  worker.thread_stack = std::make_unique<Fiber>();
  worker.strand = take_strand(worker);
  worker.thread_stack->switch_to(worker.strand->fiber);
  worker.core.store(kNoCore, std::memory_order_relaxed);
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
    first.attention.fetch_or(kGoHome, std::memory_order_seq_cst);  // `all` may end now
    first.scheduler->idle_.wake(0);
  };
  if (!started_) start();
  Worker& first = *workers_[0];
  // Begun by the caller's thread, which is the one that some libraries know.
  first.root = &task;
  first.attention.store(kRoot, std::memory_order_relaxed);
  serve(first);
  background_ = nullptr;
  busy_.store(false);
  if (task.error != nullptr) std::rethrow_exception(task.error);
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
    worker->open = nullptr;
    Task* const task = next_task(*worker, own);
    if (task == nullptr || task->kind == Kind::kStrand) {
      settle(own);
      Strand* const self = worker->strand;
      give_strand(*worker, self);
      if (task == nullptr) {
        worker->strand = nullptr;
        self->fiber.switch_to(*worker->thread_stack);
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
  const std::uint32_t here = worker->here;
  Strand* const self = worker->strand;
  ++self->stops;
  self->resume.place = here;
  OpenSpan* const open = worker->open;
  if (open != nullptr) [[unlikely]]
    pause_spans(*worker);
  // Straight to a strand that can go on, if one is next: no loop in between.
  Task* const top = worker->deque.pop();
  const bool direct = top != nullptr && top->kind == Kind::kStrand;
  if (top != nullptr && !direct) worker->deque.push(top);
  Strand* const next = direct ? strand_of(top) : take_strand(*worker);
  worker->counts.suspended.add(1);
  worker->after = {act, what, self};
  worker->strand = next;
  self->fiber.switch_to(next->fiber);
  worker = this_worker();
  worker->current = current;
  worker->here = here;
  worker->open = open;
  if (open != nullptr) [[unlikely]]
    resume_spans(*worker);
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
