// SPDX-License-Identifier: Apache-2.0
// The functions behind the templates of <amasia/tasks.hpp>.
#include <cstring>
#include <stdexcept>

#include "amasia/tasks.hpp"
#include "tasks/scheduler.hpp"

namespace amasia::tasks {
namespace detail {
namespace {

// A task that waits does others first while it has this much of its stack left.
constexpr std::size_t kRoomToHelp = 64 * 1024;

// Whether what waits may run the task on its own stack. Where that stops, all that is on it goes on
// with a worker that serves the task's place: it must be that of the one who waits.
bool may_help(const Worker& worker, const Task* task) {
  return task->kind != Kind::kStrand && task->place == worker.here;
}

void adopt(Worker& worker, Task* task) {
  task->scope = worker.current->scope;
  ++worker.current->net;
  worker.counts.spawned.add(1);
}

// A thread that is no worker, asleep until a state is ready.
struct SleepingThread : Task {
  std::atomic<std::uint32_t> woken{0};
};

// The next thing that it awaits and that is not ready gets it; else it can run.
void advance(AwaitingTask* task) {
  while (task->passed < task->count) {
    FutureState& state = *task->awaited[task->passed++];
    if (waiters_of(state).add(task)) return;
  }
  if (task->noted != nullptr) task->scope->scheduler->forget_awaiting(task);
  task->scope->scheduler->make_runnable(task);
}

void wake(Task* task) {
  switch (task->kind) {
    case Kind::kAwaiting:
      return advance(static_cast<AwaitingTask*>(task));
    case Kind::kThread: {
      auto& word = static_cast<SleepingThread*>(task)->woken;
      // The thread's frame may end once it sees this; a wake-up on a dead word harms nobody.
      word.store(1, std::memory_order_release);
      return os::futex_wake(word, 1);
    }
    case Kind::kBody:
    case Kind::kStrand:
      return task->scope->scheduler->make_runnable(task);
  }
}

void sleep_until_ready(FutureState& state) {
  SleepingThread self;
  self.kind = Kind::kThread;
  if (!waiters_of(state).add(&self)) return;
  while (self.woken.load(std::memory_order_acquire) == 0) os::futex_wait(self.woken, 0, -1);
}

// Notes a wait for as long as it lasts, where reports are wanted.
class NotedWait {
 public:
  NotedWait(Scheduler& scheduler, const char* kind, const std::source_location& where)
      : scheduler_(scheduler), wait_{kind, where} {
    if (scheduler_.detects_deadlock()) scheduler_.note_wait(&wait_);
  }
  ~NotedWait() {
    if (scheduler_.detects_deadlock()) scheduler_.forget_wait(&wait_);
  }
  NotedWait(const NotedWait&) = delete;
  NotedWait& operator=(const NotedWait&) = delete;

 private:
  Scheduler& scheduler_;
  Wait wait_;
};

}  // namespace

Worker& worker_of_task() {
  Worker* const worker = this_worker();
  if (worker == nullptr || worker->current == nullptr) {
    throw std::logic_error("called outside of run(): there is no task that this could belong to");
  }
  return *worker;
}

void* allocate(std::size_t size) {
  if (!os::BlockCache::fits(size)) return ::operator new(size);
  const std::size_t index = os::BlockCache::index_of(size);
  Worker* const worker = this_worker();
  return worker != nullptr ? worker->blocks.take(index) : os::BlockCache::take_from_store(index);
}

void release(void* block, std::size_t size) noexcept {
  if (!os::BlockCache::fits(size)) return ::operator delete(block);
  const std::size_t index = os::BlockCache::index_of(size);
  Worker* const worker = this_worker();
  if (worker != nullptr) return worker->blocks.give(block, index);
  os::BlockCache::give_to_store(block, index);
}

void spawn(Task* task) {
  Worker& worker = worker_of_task();
  adopt(worker, task);
  worker.deque.push(task);
  worker.scheduler->announce_work(worker);
}

void offer(Task* task) {
  Worker& worker = worker_of_task();
  adopt(worker, task);
  worker.deque.push(task, true);
  worker.scheduler->announce_work(worker);
}

void spawn_at(Task* task, place at) {
  task->place = at.record()->index;
  Worker& worker = worker_of_task();
  worker.at[task->place].created.add(1);
  adopt(worker, task);
  worker.scheduler->push(worker, task);
}

void spawn_awaiting(AwaitingTask* task) {
  Worker& worker = worker_of_task();
  adopt(worker, task);
  if (worker.scheduler->detects_deadlock()) worker.scheduler->note_awaiting(task);
  advance(task);
}

void fail(Scope* scope, std::exception_ptr error) noexcept {
  if (!scope->failed.exchange(true, std::memory_order_relaxed)) scope->error = std::move(error);
}

unsigned worker_count() { return worker_of_task().scheduler->worker_count(); }
unsigned worker_number() { return worker_of_task().id; }

void throw_no_state() {
  throw std::logic_error(
      "a future that stands for nothing is asked: made without a promise, or moved from");
}

bool is_ready(const FutureState& state) noexcept {
  return waiters_of(const_cast<FutureState&>(state)).is_set();
}

void make_ready(FutureState& state) noexcept {
  Task* waiting = waiters_of(state).set();
  while (waiting != nullptr) {
    Task* const next = waiting->next;  // a woken one's link is no longer ours
    wake(waiting);
    waiting = next;
  }
}

void break_promise(FutureState& state, bool was_cancelled) noexcept {
  state.error = was_cancelled
                    ? std::make_exception_ptr(cancelled("the task was cancelled before it began"))
                    : std::make_exception_ptr(broken_promise("a promise was destroyed unset"));
  make_ready(state);
}

void wait(FutureState& state, const std::source_location& where) {
  Worker* worker = this_worker();
  if (worker == nullptr) return sleep_until_ready(state);
  Participation* const current = worker->current;
  while (!is_ready(state) && worker->strand->fiber.room() > kRoomToHelp) {
    Task* const task = worker->deque.pop();
    if (task == nullptr) break;
    if (task->result != &state || task->scope != current->scope || !may_help(*worker, task)) {
      worker->deque.push(task);
      break;
    }
    execute(*worker, task);
    --current->net;
    worker = this_worker();
  }
  if (is_ready(state)) return;
  const NotedWait noted(*worker->scheduler, "for a future", where);
  worker->strand->resume.scope = current->scope;
  worker->scheduler->suspend(
      [](void* what, Strand* left) {
        if (waiters_of(*static_cast<FutureState*>(what)).add(&left->resume)) return;
        left->resume.scope->scheduler->make_runnable(&left->resume);
      },
      &state);
}

namespace {

struct Frame {
  Scope scope;
  Participation own;
  Participation* outer;

  Frame(Worker& worker, std::stop_token stop)
      : scope(worker.scheduler, worker.current->scope, std::move(stop)),
        own{&scope, 0},
        outer(worker.current) {
    worker.current = &own;
  }
};

Frame& frame_of(unsigned char* storage) { return *std::launder(reinterpret_cast<Frame*>(storage)); }

// True: that was all.
bool run_own_tasks(Frame& frame) {
  do {
    Worker* const worker = this_worker();
    if (worker->strand->fiber.room() <= kRoomToHelp) return false;
    Task* const task = worker->deque.pop();
    if (task == nullptr) return false;
    if (task->scope != &frame.scope || !may_help(*worker, task)) {
      worker->deque.push(task);
      return false;
    }
    execute(*worker, task);
    --frame.own.net;
  } while (!frame.scope.count.is_quiet(frame.own.net));
  return true;
}

void wait_for_frame(Frame& frame, const std::source_location& where) {
  Worker* worker = this_worker();
  if (!frame.scope.count.is_quiet(frame.own.net)) {
    const NotedWait noted(*worker->scheduler, "in finish", where);
    if (!run_own_tasks(frame)) {
      worker = this_worker();
      frame.scope.waiting = &worker->strand->resume;
      worker->strand->resume.scope = frame.outer->scope;
      worker->scheduler->suspend(
          [](void* what, Strand*) { settle(static_cast<Frame*>(what)->own); }, &frame);
    }
    worker = this_worker();
  }
  worker->current = frame.outer;
}

}  // namespace

FinishFrame::FinishFrame() {
  static_assert(sizeof(Frame) <= sizeof(storage_) && alignof(Frame) <= 16);
  new (storage_) Frame(worker_of_task(), std::stop_token());
}
FinishFrame::FinishFrame(std::stop_token stop) {
  new (storage_) Frame(worker_of_task(), std::move(stop));
}
FinishFrame::~FinishFrame() { frame_of(storage_).~Frame(); }

void FinishFrame::body_failed(std::exception_ptr error) noexcept {
  fail(&frame_of(storage_).scope, std::move(error));
}

void FinishFrame::wait(const std::source_location& where) {
  Frame& frame = frame_of(storage_);
  wait_for_frame(frame, where);
  if (frame.scope.failed.load(std::memory_order_relaxed)) [[unlikely]] {
    std::rethrow_exception(frame.scope.error);
  }
}

DetachedFinish::DetachedFinish(FutureState* state, std::stop_token stop) {
  struct Open {
    Participation own;
    Participation* outer;
  };
  static_assert(sizeof(Open) <= sizeof(storage_));
  Worker& worker = worker_of_task();
  Scope* const around = worker.current->scope;
  scope_ = new Scope(worker.scheduler, around, std::move(stop));
  scope_->ended = state;
  ++worker.current->net;  // for its parent it is one task
  auto* const open = new (storage_) Open{{scope_, 0}, worker.current};
  worker.current = &open->own;
}

void DetachedFinish::body_failed(std::exception_ptr error) noexcept {
  fail(scope_, std::move(error));
}

DetachedFinish::~DetachedFinish() {
  auto* const own = std::launder(reinterpret_cast<Participation*>(storage_));
  Participation* outer = nullptr;
  std::memcpy(&outer, storage_ + sizeof(Participation), sizeof outer);
  this_worker()->current = outer;
  settle(*own);
}

}  // namespace detail

void yield() {
  detail::Worker& worker = detail::worker_of_task();
  detail::Scheduler& scheduler = *worker.scheduler;
  if (worker.errands != nullptr) [[unlikely]]
    worker.errands->attend_between_tasks();
  if (worker.deque.empty() && !worker.pushed_elsewhere && !scheduler.has_waiting(worker)) {
    return os::yield_core();
  }
  worker.strand->resume.scope = worker.current->scope;
  scheduler.suspend(
      [](void* what, detail::Strand* left) {
        static_cast<detail::Scheduler*>(what)->put_last(&left->resume);
      },
      &scheduler);
}

bool stop_requested() {
  const detail::Scope* const scope = detail::worker_of_task().current->scope;
  return scope->may_stop && scope->stop_requested();
}

runtime::runtime(options chosen)
    : scheduler_(std::make_unique<detail::Scheduler>(std::move(chosen))) {}
runtime::~runtime() = default;
void runtime::run_root(const std::function<void()>& root) { scheduler_->run_root(root); }

}  // namespace amasia::tasks
