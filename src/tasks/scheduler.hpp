// SPDX-License-Identifier: Apache-2.0
// The workers, and how a task gets from its creator to a stack.
//
// A worker's thread is always on some strand: a pooled stack with the loop below on it. The loop
// takes a task and calls it, on its own stack: a task that never waits costs no switch. A task that
// waits stops its whole strand, loop and all; the worker takes a spare strand and goes on there.
// What the stopped strand waits for makes its `resume` task ready: a worker's loop that finds it
// puts its own strand, which has nothing on it, among the spares, and switches.
//
//   a strand is   run by one worker | stopped, known to what it waits for | spare of one worker, or
//   of all | on its way (its resume task is in a queue)
//
// Before it waits, a task does what it waits for itself where that lies on top of its worker's
// deque: the tasks of its own finish scope, or the one that makes its future. Only those: any other
// task might wait for what the caller is to do next. And only while there is room on the stack.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "amasia/tasks.hpp"
#include "base/base.hpp"
#include "os/os.hpp"
#include "tasks/block_pool.hpp"
#include "tasks/deque.hpp"
#include "tasks/errands.hpp"
#include "tasks/fiber.hpp"
#include "tasks/idle_workers.hpp"
#include "tasks/scope.hpp"
#include "tasks/stack_pool.hpp"
#include "tasks/waiter_list.hpp"

namespace amasia::tasks::detail {

struct Strand {
  Strand(void* stack, Bytes bytes, Fiber::Entry entry) : fiber(stack, bytes, entry, this) {
    resume.kind = Kind::kStrand;
  }
  Fiber fiber;
  Task resume;
  Strand* next = nullptr;  // among spares
};

// What is done for a strand right after it was left: until then it must not be resumed.
struct AfterSwitch {
  void (*act)(void* what, Strand* left) = nullptr;
  void* what = nullptr;
  Strand* left = nullptr;
};

// Written by one thread, readable by all at any time.
class Counter {
 public:
  void add(std::int64_t more) {
    value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};
struct WorkerCounts {
  Counter run, spawned, stolen, suspended, slept, idle_ns;
};

// All fields belong to the worker's thread but where it says otherwise.
struct alignas(64) Worker {
  Worker(Scheduler* of, std::uint32_t number) : scheduler(of), id(number) {}

  Scheduler* const scheduler;
  const std::uint32_t id;
  Participation* current = nullptr;  // of what runs now
  Deque<Task> deque;                 // others steal
  BlockCache blocks;
  Strand* strand = nullptr;
  Strand* spares = nullptr;
  std::uint32_t spare_count = 0;
  std::uint32_t looks = 0;
  std::uint32_t victim = 0;
  Errands* errands = nullptr;        // worker 0's, while modules are attached
  AfterSwitch after;
  WorkerCounts counts;
  std::unique_ptr<Fiber> home;       // the thread's own stack
  std::atomic<bool> go_home{false};  // any thread
  os::Thread thread;
};

// Of the calling thread; nullptr: it is none's. Never inlined: a strand that was switched may go on
// with another thread.
Worker* this_worker() noexcept;
WaiterList<Task>& waiters_of(FutureState& state) noexcept;

// Who waits for what, for reports of deadlocks; kept only where those are wanted.
struct Wait {
  const char* kind;
  std::source_location where;
  Wait* next = nullptr;
  Wait* previous = nullptr;
};

class Scheduler {
 public:
  explicit Scheduler(options chosen);
  ~Scheduler();

  void run_root(const std::function<void()>& root);
  std::vector<worker_statistics> statistics() const;
  unsigned worker_count() const { return static_cast<unsigned>(workers_.size()); }
  bool detects_deadlock() const { return options_.detect_deadlock; }

  // Where others may take it from; any thread.
  void make_runnable(Task* task);
  // At the end of the line for all.
  void put_last(Task* task);
  bool has_waiting() const { return line_length_.load(std::memory_order_relaxed) != 0; }
  // There is work that somebody asleep could take: called after it was made.
  void announce_work() {
    if (!has_barrier_) strong_fence();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (idle_.any()) [[unlikely]]
      idle_.wake_one(all_);
  }

  // Stops the caller's strand, and does `act` once it has stopped. Returns when it is resumed.
  void suspend(void (*act)(void* what, Strand* left), void* what);

  // Modules; module.cpp.
  void attach(module& added);
  void detach(module& attached) noexcept;
  void post(Call* call);
  Errands& errands() { return errands_; }
  void operation_began() { outstanding_.fetch_add(1, std::memory_order_relaxed); }
  void operation_ended() { outstanding_.fetch_sub(1, std::memory_order_release); }

  void note_wait(Wait* wait);
  void forget_wait(Wait* wait);

 private:
  static void enter_strand(void* strand);
  static void enter_thread(void* worker);
  static void strong_fence();
  void loop();
  void perform_after_switch();
  Strand* take_strand(Worker& worker);
  void give_strand(Worker& worker, Strand* strand);
  Task* next_task(Worker& worker, Participation& own);
  Task* search(Worker& worker, Participation& own);
  Task* look_elsewhere(Worker& worker);
  Task* take_waiting();
  Task* steal(Worker& worker);
  bool has_work() const;
  Task* look_around(Worker& worker);
  void rest(Worker& worker);
  void sleep(Worker& worker, Nanos most);
  void check_thread() const;
  void report_deadlock_if_any();
  void serve(Worker& worker);

  const options options_;
  const bool has_barrier_;
  StackPool stacks_;
  std::vector<std::unique_ptr<Worker>> workers_;
  IdleWorkers<> idle_;
  WorkerSet all_;
  Scope base_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> busy_{false};  // run_root() is under way

  struct Attached {
    module* what;
    std::unique_ptr<module_host> host;
  };
  std::vector<Attached> attached_;  // outside of run()
  int home_thread_ = 0;             // that of run(), where modules are attached
  Errands errands_;
  std::atomic<std::int64_t> outstanding_{0};  // operations of modules: no deadlock while there are

  os::Mutex line_mutex_;
  Task* line_first_ AMASIA_GUARDED_BY(line_mutex_) = nullptr;
  Task* line_last_ AMASIA_GUARDED_BY(line_mutex_) = nullptr;
  std::atomic<std::uint64_t> line_length_{0};

  os::Mutex spares_mutex_;
  Strand* spares_ AMASIA_GUARDED_BY(spares_mutex_) = nullptr;
  std::vector<std::unique_ptr<Strand>> strands_ AMASIA_GUARDED_BY(spares_mutex_);

  os::Mutex waits_mutex_;
  Wait* waits_ AMASIA_GUARDED_BY(waits_mutex_) = nullptr;
};

// Ends the participation; who ends the scope by that resumes who waits for it.
void settle(Participation& own);
void end_scope(Scope* scope);
// Runs a task that is nobody else's any more, for a scope that the caller takes part in.
inline void execute(Worker& worker, Task* task) {
  if (worker.errands != nullptr) [[unlikely]]
    worker.errands->attend_between_tasks();
  worker.counts.run.add(1);
  const Scope* const scope = task->scope;
  const bool run = !scope->may_stop || !scope->stop.stop_requested();
  task->execute(task, run);
}

}  // namespace amasia::tasks::detail
