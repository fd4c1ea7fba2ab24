// SPDX-License-Identifier: Apache-2.0
// What the templates of <amasia/tasks.hpp> are made of; no part of the interface.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#define AMASIA_TASKS_API __attribute__((visibility("default")))

namespace amasia::tasks::detail {

struct Scope;
struct FutureState;

enum class Kind : std::uint8_t {
  kBody,      // runs its body on the stack of whoever finds it
  kAwaiting,  // the same, once all that it awaits is ready
  kStrand,    // a stack that stopped, to be gone on with
  kThread,    // a thread outside of the runtime that sleeps until it is woken
};

// A task from its creation to its end. Its closure, if it has one, follows it in memory.
struct Task {
  // Runs the body, or (`run` is false: cancelled) only destroys it; frees the task.
  void (*execute)(Task* self, bool run) = nullptr;
  Scope* scope = nullptr;
  Task* next = nullptr;           // of the list that it is in, if any
  FutureState* result = nullptr;  // what it makes ready, if anything
  Kind kind = Kind::kBody;
  std::uint32_t place = 0;  // 0: none; else of a PlaceRecord
};

// The dependencies of a kAwaiting task.
struct AwaitingTask : Task {
  FutureState** awaited = nullptr;
  std::uint32_t count = 0;
  std::uint32_t passed = 0;  // those before are ready
  const char* body_type = "";  // a text that names it, for reports
  void* noted = nullptr;       // in the list for reports of deadlocks, if that is kept
};

struct FutureState {
  alignas(void*) unsigned char waiters[sizeof(void*)] = {};  // a WaiterList<Task>
  std::atomic<std::uint32_t> references{1};
  std::atomic<bool> claimed{false};  // somebody has put, or is putting
  std::exception_ptr error;
  void (*destroy)(FutureState* self) noexcept = nullptr;
};

template <typename T>
struct ValueState : FutureState {
  static_assert(!std::is_reference_v<T>, "a future has a value: return a pointer instead");
  ValueState() {
    destroy = [](FutureState* self) noexcept { delete static_cast<ValueState*>(self); };
  }
  ~ValueState() {
    if (has_value) value().~T();
  }
  static void* operator new(std::size_t size);
  static void operator delete(void* block, std::size_t size) noexcept;
  T& value() { return *std::launder(reinterpret_cast<T*>(storage)); }
  bool has_value = false;
  alignas(T) unsigned char storage[sizeof(T)];
};
template <>
struct ValueState<void> : FutureState {
  ValueState() {
    destroy = [](FutureState* self) noexcept { delete static_cast<ValueState*>(self); };
  }
  static void* operator new(std::size_t size);
  static void operator delete(void* block, std::size_t size) noexcept;
};

// Memory that workers keep at hand. Any thread.
AMASIA_TASKS_API void* allocate(std::size_t size);
AMASIA_TASKS_API void release(void* block, std::size_t size) noexcept;

// The caller runs in a task, or std::logic_error. The task belongs to the caller's finish scope.
AMASIA_TASKS_API void spawn(Task* task);
// The same; it was made for others to take.
AMASIA_TASKS_API void offer(Task* task);
AMASIA_TASKS_API void spawn_awaiting(AwaitingTask* task);
// The caller's finish scope is that of run() itself.
AMASIA_TASKS_API void enter_run();
// An exception that left a task's body.
AMASIA_TASKS_API void fail(Scope* scope, std::exception_ptr error) noexcept;
// What a loop does next. In between modules get their turn. kDivide, only where it `may_divide`:
// the caller's worker has nothing left that others could take.
enum class LoopStep : std::uint32_t { kRunTiles, kDivide, kStop };
// The answer stays the same, and is not asked for before each tile, which may be of few
// nanoseconds, while the oldest of what others could take lies where it lay, and the body has not
// waited, after which the worker may be another.
struct LoopTurn {
  LoopStep step;
  std::uint16_t worker, workers;  // where it divides: the caller's number, and how many there are
  const std::atomic<std::int64_t>* top;  // of the worker's deque
  std::int64_t top_seen;                 // none, where each tile is to be asked for
  const std::uint32_t* stops;            // of the caller's stack
  std::uint32_t stops_seen;

  bool holds() const {
    return top->load(std::memory_order_relaxed) == top_seen && *stops == stops_seen;
  }
};
// In a task.
AMASIA_TASKS_API LoopTurn next_turn(bool may_divide);
AMASIA_TASKS_API unsigned worker_count();
AMASIA_TASKS_API unsigned worker_number();  // the caller's, from 0 on; another after each wait

// Of a future that has no state: std::logic_error.
[[noreturn]] AMASIA_TASKS_API void throw_no_state();
inline FutureState& state_of(FutureState* state) {
  if (state == nullptr) [[unlikely]] throw_no_state();
  return *state;
}
AMASIA_TASKS_API bool is_ready(const FutureState& state) noexcept;
// Any thread: in a task it is suspended, else the thread sleeps.
AMASIA_TASKS_API void wait(FutureState& state, const std::source_location& where);
AMASIA_TASKS_API void make_ready(FutureState& state) noexcept;

inline void retain(FutureState* state) noexcept {
  state->references.fetch_add(1, std::memory_order_relaxed);
}
inline void drop(FutureState* state) noexcept {
  // Alone: nobody can come to hold it any more.
  if (state->references.load(std::memory_order_acquire) == 1 ||
      state->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    state->destroy(state);
  }
}
AMASIA_TASKS_API void break_promise(FutureState& state, bool cancelled) noexcept;

template <typename T>
void* ValueState<T>::operator new(std::size_t size) {
  return allocate(size);
}
template <typename T>
void ValueState<T>::operator delete(void* block, std::size_t size) noexcept {
  release(block, size);
}
inline void* ValueState<void>::operator new(std::size_t size) { return allocate(size); }
inline void ValueState<void>::operator delete(void* block, std::size_t size) noexcept {
  release(block, size);
}

// A finish scope that lives in its creator's frame.
class AMASIA_TASKS_API FinishFrame {
 public:
  FinishFrame();
  explicit FinishFrame(std::stop_token stop);
  FinishFrame(const FinishFrame&) = delete;
  FinishFrame& operator=(const FinishFrame&) = delete;
  ~FinishFrame();
  void body_failed(std::exception_ptr error) noexcept;
  // Until all tasks of the scope are over; throws the first exception of them.
  void wait(const std::source_location& where);

 private:
  alignas(16) unsigned char storage_[128];
};

// One whose end makes a state ready, which is given to it with a reference of its own.
class AMASIA_TASKS_API DetachedFinish {
 public:
  DetachedFinish(FutureState* state, std::stop_token stop);
  DetachedFinish(const DetachedFinish&) = delete;
  DetachedFinish& operator=(const DetachedFinish&) = delete;
  ~DetachedFinish();  // the body is over
  void body_failed(std::exception_ptr error) noexcept;

 private:
  Scope* scope_;
  alignas(16) unsigned char storage_[32];
};

// The values of what a callable returns, or what it throws.
template <typename T, typename Body>
void put_result(FutureState* state, Body& body) noexcept {
  try {
    if constexpr (std::is_void_v<T>) {
      body();
    } else {
      auto* typed = static_cast<ValueState<T>*>(state);
      new (typed->storage) T(body());
      typed->has_value = true;
    }
  } catch (...) {
    state->error = std::current_exception();
  }
  make_ready(*state);
}

template <typename Body, typename Base = Task>
struct ClosureTask : Base {
  template <typename F>
  explicit ClosureTask(F&& from) : body(std::forward<F>(from)) {
    this->execute = &run_and_free;
  }
  static ClosureTask* make(auto&& from) {
    static_assert(alignof(ClosureTask) <= 16, "a closure of stronger alignment: use a pointer");
    void* const block = allocate(sizeof(ClosureTask));
    try {
      return new (block) ClosureTask(std::forward<decltype(from)>(from));
    } catch (...) {
      release(block, sizeof(ClosureTask));
      throw;
    }
  }
  static void run_and_free(Task* task, bool run) {
    auto* const self = static_cast<ClosureTask*>(task);
    if (run) {
      try {
        self->body();
      } catch (...) {
        fail(self->scope, std::current_exception());
      }
    }
    self->~ClosureTask();
    release(self, sizeof(ClosureTask));
  }
  Body body;
};

// Its result is a future's value.
template <typename T, typename Body, typename Base = Task>
struct ResultTask : Base {
  template <typename F>
  ResultTask(F&& from, FutureState* state) : body(std::forward<F>(from)) {
    this->execute = &run_and_free;
    this->result = state;
  }
  static ResultTask* make(auto&& from, FutureState* state) {
    static_assert(alignof(ResultTask) <= 16, "a closure of stronger alignment: use a pointer");
    void* const block = allocate(sizeof(ResultTask));
    try {
      return new (block) ResultTask(std::forward<decltype(from)>(from), state);
    } catch (...) {
      release(block, sizeof(ResultTask));
      throw;
    }
  }
  static void run_and_free(Task* task, bool run) {
    auto* const self = static_cast<ResultTask*>(task);
    FutureState* const state = self->result;
    if (run) {
      put_result<T>(state, self->body);
    } else {
      break_promise(*state, true);
    }
    self->~ResultTask();
    release(self, sizeof(ResultTask));
    drop(state);
  }
  Body body;
};

}  // namespace amasia::tasks::detail
