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
//
// Where a worker looks (next_task, then search): its own deques along its pop path; the lines of
// its places; the deques of others along its steal path. In between, now and then, at a line first,
// so that what yielded comes to its turn; and at places that few workers serve as soon as it is
// told that something was put there.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "amasia/tasks.hpp"
#include "base/base.hpp"
#include "machine/machine.hpp"
#include "os/os.hpp"
#include "tasks/copiers.hpp"
#include "tasks/deque.hpp"
#include "tasks/errands.hpp"
#include "tasks/fiber.hpp"
#include "tasks/idle_workers.hpp"
#include "tasks/left_alone.hpp"
#include "tasks/place_queues.hpp"
#include "tasks/scope.hpp"
#include "tasks/stack_pool.hpp"
#include "tasks/stall_watch.hpp"
#include "tasks/statistics.hpp"
#include "tasks/trace.hpp"
#include "tasks/waiter_list.hpp"

namespace amasia::tasks::detail {

struct Strand {
  Strand(void* stack, Bytes bytes, Fiber::Entry entry) : fiber(stack, bytes, entry, this) {
    resume.kind = Kind::kStrand;
  }
  Fiber fiber;
  Task resume;
  Strand* next = nullptr;   // among spares
  std::uint32_t stops = 0;  // how often what is on it has waited; see LoopTurn
};

// What is done for a strand right after it was left: until then it must not be resumed.
struct AfterSwitch {
  void (*act)(void* what, Strand* left) = nullptr;
  void* what = nullptr;
  Strand* left = nullptr;
};

constexpr int kNoCore = -1;

// All fields belong to the worker's thread but where it says otherwise.
struct alignas(64) Worker {
  Worker(Scheduler* of, std::uint32_t number) : scheduler(of), id(number) {}

  Scheduler* const scheduler;
  const std::uint32_t id;
  Participation* current = nullptr;  // of what runs now
  std::uint32_t here = 0;            // the place of what runs now; as Task::place
  bool pushed_elsewhere = false;     // some of `deques` are made
  bool watched = false;              // one of the next two, or errands: looked at for each task
  bool traces = false;               // events are wanted
  bool measures = false;             // the time of each task is
  OpenSpan* open = nullptr;          // the innermost of what runs now
  std::atomic<std::uint32_t> attention{0};  // any thread; bits of Attention
  // Of what it began last, for others to see; kNoCore while it searches. It may have moved since.
  std::atomic<int> core{kNoCore};
  Deque<Task> deque;                        // at its home; others steal
  os::BlockCache blocks;
  Strand* strand = nullptr;
  Strand* spares = nullptr;
  std::uint32_t spare_count = 0;
  std::uint32_t looks = 0;
  std::uint32_t victim = 0;
  std::vector<LeftAlone> left_alone;  // by victim; of what lies at its home
  Errands* errands = nullptr;        // worker 0's, while modules are attached
  std::uint32_t next_line = 0;
  bool steals_first = false;
  bool collects = false;             // takes the next task that it makes runnable itself, at once
  AfterSwitch after;
  WorkerCounts counts;
  std::unique_ptr<PlaceCounts[]> at;  // by place; from the first run() on
  WorkerLog log;
  std::unique_ptr<Fiber> thread_stack;
  os::Thread thread;

  // From here on written before workers start, but for what `deques` holds.
  PlaceRecord* home = nullptr;
  std::vector<PlaceRecord*> pop_path;
  std::vector<PlaceRecord*> steal_path;
  std::vector<PlaceRecord*> places;  // of both paths, each once, with the one of no place first
  std::vector<std::unique_ptr<Deque<Task>>> deques;  // by place, where it is not the home
  Task* root = nullptr;  // the next that it runs, and nobody else; run_root() gives it
};

// What a worker is to look at before its own tasks.
enum Attention : std::uint32_t {
  kGoHome = 1,  // the call of run() is over: back to its caller
  kRoot = 2,    // Worker::root is there
  kNarrow = 4,  // something was put at a place that not all workers serve
};

// Of the calling thread; nullptr: it is none's. Never inlined: a strand that was switched may go on
// with another thread.
Worker* this_worker() noexcept;
// Of the calling task; std::logic_error: there is none.
Worker& worker_of_task();
WaiterList<Task>& waiters_of(FutureState& state) noexcept;

// With what the environment says where the program leaves it open. std::runtime_error.
options completed(options chosen);
// The platform that the options name: a file's, or the plain one. std::runtime_error.
machine::Platform chosen_platform(const options& chosen);

// Who waits for what, for reports of deadlocks; kept only where those are wanted.
struct Wait {
  const char* kind;
  std::source_location where;
  const AwaitingTask* task = nullptr;  // one that has not begun; `kind` is its body's type then
  Wait* next = nullptr;
  Wait* previous = nullptr;
};

class Scheduler {
 public:
  explicit Scheduler(options chosen);
  ~Scheduler();

  void run_root(const std::function<void()>& root);
  std::vector<worker_statistics> statistics() const;
  std::vector<place_statistics> statistics_of_places() const;
  std::vector<module_statistics> statistics_of_modules() const;
  Statistics all_statistics() const;

  // Before the first run_root() only, else std::logic_error.
  PlaceRecord& add_place(const place_description& description);
  // Records, of which the first stands for no place.
  const std::vector<std::unique_ptr<PlaceRecord>>& places() const { return places_; }
  const PlaceRecord& place_named(std::string_view name) const;
  std::vector<unsigned> workers_at(const PlaceRecord& place) const;
  Copiers& copiers() { return copiers_; }
  std::vector<span_statistics> spans() const;
  void write_trace() const noexcept;
  // On the worker's thread, where events are wanted.
  void emit(Worker& worker, const trace_event& event);
  const char* place_name(const Worker& worker, std::uint32_t place) const;
  bool started() const { return started_; }
  // The finish scope of run() itself, for tasks that serve all.
  void set_background(Scope* scope) { background_ = scope; }
  Scope* background() const { return background_; }
  unsigned worker_count() const { return static_cast<unsigned>(workers_.size()); }
  bool detects_deadlock() const { return options_.detect_deadlock; }

  // Where others may take it from; any thread.
  void make_runnable(Task* task);
  // At the end of the line of its place.
  void put_last(Task* task);
  // Whether something waits in a line that the worker looks at.
  bool has_waiting(const Worker& worker) const;
  // The caller's worker; at the home of the worker if the task has no place.
  void push(Worker& worker, Task* task) {
    if (task->place != 0 && task->place != worker.home->index) [[unlikely]] {
      return push_elsewhere(worker, task);
    }
    worker.deque.push(task);
    if (!worker.collects) announce_work(worker);
  }
  // Something was pushed at the worker's home.
  void announce_work(const Worker& worker) {
    if (!has_barrier_) strong_fence();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (idle_.any()) [[unlikely]]
      idle_.wake_one(worker.home->thieves);
  }

  // Stops the caller's strand, and does `act` once it has stopped. Returns when it is resumed.
  void suspend(void (*act)(void* what, Strand* left), void* what);

  // Modules; module.cpp.
  void attach(module& added);
  void detach(module& attached) noexcept;
  void post(Call* call);
  void tell_of_idleness(module* whom);
  bool some_worker_sleeps() const { return idle_.any(); }
  Errands& errands() { return errands_; }
  void operation_began() { stall_watch_.operation_began(); }
  void operation_ended() {
    if (stall_watch_.operation_ended() && detects_deadlock()) ask_again_if_all_sleep();
  }
  // Any thread. All workers sleep during run(), and only other threads could end that.
  bool is_stalled() const;
  void set_judge(module* judge);
  std::vector<std::string> lines_of_waits(const std::source_location& own) const;
  // Calls on_deadlock, or aborts.
  void report(const std::string& text) const;

  // Tasks that are yet to begin, where reports are wanted.
  void note_awaiting(AwaitingTask* task);
  void forget_awaiting(AwaitingTask* task);
  void note_wait(Wait* wait);
  void forget_wait(Wait* wait);

 private:
  static void enter_strand(void* strand);
  static void enter_thread(void* worker);
  static void strong_fence();
  // There is work that somebody asleep could take: called after it was made.
  void announce_work(const WorkerSet& takers) {
    if (!has_barrier_) strong_fence();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (idle_.any()) [[unlikely]]
      idle_.wake_one(takers);
  }
  void push_elsewhere(Worker& worker, Task* task);
  void tell_takers(const PlaceRecord& place);
  void write_statistics() const noexcept;
  static void write_file(const char* what, const std::string& pattern,
                         const std::string& text) noexcept;
  ModuleCounts& counts_of(const module& of);
  void set_up_places();
  void set_up_paths();
  void start();
  void loop();
  void perform_after_switch();
  Strand* take_strand(Worker& worker);
  void give_strand(Worker& worker, Strand* strand);
  Task* next_task(Worker& worker, Participation& own);
  Task* attend(Worker& worker);
  Task* pop(Worker& worker);
  Task* search(Worker& worker, Participation& own);
  Task* look_elsewhere(Worker& worker);
  Task* take_waiting(Worker& worker);
  Task* steal(Worker& worker);
  Task* steal_at(Worker& worker, PlaceRecord& place, bool at_once);
  Task* steal_some(Worker& worker, Deque<Task>& from);
  bool sees_work(const Worker& worker) const;
  bool shares_core(const Worker& worker) const;
  bool has_work() const;
  Task* look_around(Worker& worker);
  void pass_on(const Worker& worker);
  void rest(Worker& worker);
  void tell_that_idle();
  void sleep(Worker& worker, Nanos most);
  void check_thread() const;
  bool all_sleep() const;
  void ask_again_if_all_sleep();
  void look_for_deadlock();
  void report_deadlock_if_any();
  void serve(Worker& worker);

  const options options_;
  machine::Platform platform_;
  const bool has_barrier_;
  StackPool stacks_;
  std::vector<std::unique_ptr<PlaceRecord>> places_;
  std::vector<std::unique_ptr<Worker>> workers_;
  IdleWorkers<> idle_;
  Scope base_;
  Scope* background_ = nullptr;
  Copiers copiers_;
  bool started_ = false;
  std::atomic<bool> set_up_{false};  // workers have their places, and will keep them
  std::atomic<bool> stopping_{false};
  std::atomic<bool> busy_{false};  // run_root() is under way
  std::atomic<std::uint64_t> in_lines_{0};  // tasks, of all places

  struct Attached {
    module* what;
    std::unique_ptr<module_host> host;
  };
  std::vector<Attached> attached_;  // outside of run()
  int home_thread_ = 0;             // that of run(), where modules are attached
  Errands errands_;
  StallWatch<> stall_watch_;        // operations of modules: no deadlock while there are
  module* judge_ = nullptr;         // of deadlocks; set outside of run()
  os::Mutex told_mutex_;
  std::vector<module*> told_of_idleness_ AMASIA_GUARDED_BY(told_mutex_);
  mutable os::Mutex modules_mutex_;
  std::vector<std::unique_ptr<ModuleCounts>> module_counts_ AMASIA_GUARDED_BY(modules_mutex_);

  os::Mutex spares_mutex_;
  Strand* spares_ AMASIA_GUARDED_BY(spares_mutex_) = nullptr;
  std::vector<std::unique_ptr<Strand>> strands_ AMASIA_GUARDED_BY(spares_mutex_);

  mutable os::Mutex waits_mutex_;
  Wait* waits_ AMASIA_GUARDED_BY(waits_mutex_) = nullptr;
  bool reporting_ AMASIA_GUARDED_BY(waits_mutex_) = false;
};

// Before the task modules get their turn, and a trace tells of it.
void run_watched(Worker& worker, Task* task, bool run);
// What is open on a strand that stops, or goes on.
void pause_spans(Worker& worker);
void resume_spans(Worker& worker);

// Ends the participation; who ends the scope by that resumes who waits for it.
void settle(Participation& own);
void end_scope(Scope* scope);
// Runs a task that is nobody else's any more, for a scope that the caller takes part in.
inline void execute(Worker& worker, Task* task) {
  worker.counts.run.add(1);
  worker.here = task->place;
  const Scope* const scope = task->scope;
  const bool run = !scope->may_stop || !scope->stop_requested();
  if (worker.watched) [[unlikely]]
    return run_watched(worker, task, run);
  task->execute(task, run);
}

}  // namespace amasia::tasks::detail
