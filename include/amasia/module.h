// SPDX-License-Identifier: Apache-2.0
// What a module is: a library (MPI, OpenSHMEM, CUDA, files, ...) whose operations become futures of
// <amasia/tasks.hpp>. Modules do not know of each other, and the libraries behind them know nothing
// of tasks. How to add one (docs/modules.md has it in full, with the code of one):
//
//   1. Derive from module. The constructor calls runtime::attach(), the destructor detach();
//      places, copies and memory that only the module understands: runtime::add_place(),
//      copies_by() and memory_by() in the constructor.
//   2. initialise() and finalise() begin and end the library.
//   3. An operation makes a promise, and returns its future. It has the library called by
//      module_host::call(), with a hold_scope() moved into the closure, so that the caller's finish
//      waits for it; the closure keeps promise and hold, and calls poll_me().
//   4. poll() asks the library what is over: puts the promise, or fails it with what the library
//      said; then drops the hold. It returns nothing_left when it kept none.
//   5. Where the library can wake a thread there is no poll: that thread puts the promise.
//
// The thread that calls runtime::run(), worker 0, is the only one that calls into a module: a
// library that wants to be called by one thread (MPI_THREAD_FUNNELED) gets that.
//
//   operation of         caller           effect
//   module_host::call    any task         the closure is called on that thread: at once if the
//                                         caller is there, else before its next task; all closures
//                                         in the order in which they were given
//   module_host::hold    any task         the caller's finish scope waits until the hold is dropped
//   module_host::poll_me that thread      poll() is called until it says that nothing is left
//   module_host::async_within  any thread a task in the finish scope of a hold
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "amasia/tasks.hpp"

namespace amasia::tasks {

class module_host;

enum class poll_result {
  nothing_left,    // no operation is outstanding: not called again until poll_me()
  none_completed,  // called again, with pauses: docs/modules.md
  some_completed,  // called again at once
};

// All calls come from the thread of run(), the first two outside of it.
class AMASIA_TASKS_API module {
 public:
  module() = default;
  module(const module&) = delete;
  module& operator=(const module&) = delete;
  virtual ~module();

  virtual const char* name() const noexcept = 0;
  // Once, by runtime::attach(). The host outlives finalise(). Throws if the library cannot be used.
  virtual void initialise(module_host& host) = 0;
  // Once, by runtime::detach(), when no operation is outstanding.
  virtual void finalise() noexcept = 0;
  // Completes what is over: puts the promises, then drops the holds. Must not wait or throw.
  virtual poll_result poll() noexcept { return poll_result::nothing_left; }
  // A worker has found nothing and is about to sleep; only after module_host::tell_me_of_idleness()
  // was called. On that worker's thread, one call at a time. Must not wait, throw or create tasks.
  virtual void idle() noexcept {}
  // All workers sleep and no operation (hold_scope()) is outstanding: nothing but what other
  // processes do can make a task runnable. Instead of the report of a deadlock; only after
  // module_host::judge_deadlocks() was called. On a worker's thread, several at once. Must not
  // wait, throw or create tasks.
  virtual void stalled() noexcept {}
};

// Keeps a finish scope waiting. Dropped by any thread, after the operation's promise is put.
class AMASIA_TASKS_API hold {
 public:
  hold() = default;
  hold(detail::Scope* scope, bool is_operation) noexcept
      : scope_(scope), is_operation_(is_operation) {}
  hold(hold&& other) noexcept
      : scope_(std::exchange(other.scope_, nullptr)), is_operation_(other.is_operation_) {}
  hold& operator=(hold other) noexcept {
    std::swap(scope_, other.scope_);
    std::swap(is_operation_, other.is_operation_);
    return *this;
  }
  ~hold() { release(); }
  void release() noexcept;
  // Of an operation that has no future: the error leaves the finish that is held. Before release().
  void fail(std::exception_ptr error) noexcept;

 private:
  friend class module_host;
  detail::Scope* scope_ = nullptr;
  bool is_operation_ = false;  // no deadlock is reported meanwhile
};

namespace detail {
struct ModuleCounts;
// Something for the thread of run() to call.
struct Call {
  void (*execute)(Call* self) noexcept = nullptr;  // frees it, too
  ModuleCounts* counts = nullptr;                  // of the module whose call it is
  Call* next = nullptr;
};
template <typename Body>
struct ClosureCall : Call {
  explicit ClosureCall(Body&& from) : body(std::move(from)) { execute = &run_and_free; }
  static void run_and_free(Call* call) noexcept {
    auto* const self = static_cast<ClosureCall*>(call);
    self->body();
    self->~ClosureCall();
    release(self, sizeof(ClosureCall));
  }
  static Call* make(Body&& from) {
    static_assert(alignof(ClosureCall) <= 16, "a closure of stronger alignment: use a pointer");
    return new (allocate(sizeof(ClosureCall))) ClosureCall(std::move(from));
  }
  Body body;
};
}  // namespace detail

// What a module gets from the runtime that it is attached to.
class AMASIA_TASKS_API module_host {
 public:
  module_host(detail::Scheduler& scheduler, module& of, detail::ModuleCounts& counts)
      : scheduler_(scheduler), module_(of), counts_(counts) {}
  module_host(const module_host&) = delete;
  module_host& operator=(const module_host&) = delete;

  // Calls body() on the thread of run(); from tasks only. It must not wait, nor throw: what goes
  // wrong is put into a promise. It may be called on the caller's stack, which is a task's.
  template <typename Body>
  void call(Body&& body) {
    if (begin_here()) {
      body();
      end_here();
    } else {
      post(detail::ClosureCall<std::decay_t<Body>>::make(std::forward<Body>(body)));
    }
  }
  // The caller's finish scope does not end before the hold does. From tasks only.
  hold hold_scope();
  // On the thread of run().
  void poll_me();
  // A task of the held finish scope, as if who took the hold had created it. Any thread.
  template <typename Body>
  void async_within(const hold& held, Body&& body) {
    create(detail::ClosureTask<std::decay_t<Body>>::make(std::forward<Body>(body)), held);
  }
  // From now on module::idle() is called. In initialise().
  void tell_me_of_idleness();
  // Whether a worker sleeps, or is about to. Any thread; out of date at once.
  bool some_worker_sleeps() const noexcept;

  // For a module whose tasks wait for those of other processes: it alone can tell whether that is
  // a deadlock. In initialise(), by one module at most: module::stalled() is called from now on,
  // in programs that want reports, and the module says when there is one.
  void judge_deadlocks();
  bool detects_deadlock() const noexcept;
  // As hold_scope(), for what the module judges itself: not an operation that hides a deadlock.
  hold hold_scope_of_others();
  // Whether module::stalled() could be called right now. Any thread.
  bool is_stalled() const noexcept;
  // A line for each task that waits, but for those that wait at `own`, and each that is yet to
  // begin. While all is stalled.
  std::vector<std::string> waits(const where& own) const;
  // Calls options::on_deadlock or, if there is none, aborts with the text. Any thread.
  void report_deadlock(const std::string& report);

 private:
  bool begin_here();
  void end_here() noexcept;
  void post(detail::Call* call);
  void create(detail::Task* task, const hold& held);
  hold hold_scope(bool is_operation);
  detail::Scheduler& scheduler_;
  module& module_;
  detail::ModuleCounts& counts_;
  std::int64_t call_began_ns_ = 0;  // of the thread of run()
};

}  // namespace amasia::tasks
