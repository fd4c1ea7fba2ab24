// SPDX-License-Identifier: Apache-2.0
// Composable tasks: async, finish, futures, parallel loops. docs/tasks.md has a complete example.
//
// Tasks are created within run() and belong to the finish scope that they are created in. Where a
// task waits (finish, future::get) only its stack stops; the worker goes on with other tasks. A
// task may go on with another thread after it waited: it must not hold a mutex, nor rely on
// thread-local variables, across a wait.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "amasia/tasks/detail.hpp"

namespace amasia::tasks {

// A future whose promise was destroyed before anything was put.
class AMASIA_TASKS_API broken_promise : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// A future whose task was cancelled before it began.
class AMASIA_TASKS_API cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using where = std::source_location;

// A value that is there at some time, or an exception. Copies are of the same; many may wait. One
// that is not valid() stands for nothing; to ask it, or to wait for it, throws std::logic_error.
template <typename T>
class future {
 public:
  future() = default;
  explicit future(detail::FutureState* state) noexcept : state_(state) {}  // takes a reference over
  future(const future& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) detail::retain(state_);
  }
  future(future&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  future& operator=(future other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~future() {
    if (state_ != nullptr) detail::drop(state_);
  }

  bool valid() const noexcept { return state_ != nullptr; }
  bool ready() const { return detail::is_ready(detail::state_of(state_)); }
  // Any thread. A task is suspended meanwhile.
  void wait(const where& at = where::current()) const {
    if (!ready()) detail::wait(*state_, at);
  }
  // Waits; the value, or the exception is thrown. By reference, as long as the future lives.
  auto get(const where& at = where::current()) const& -> std::add_lvalue_reference_t<const T> {
    wait(at);
    return result();
  }
  // The value itself. One that cannot be copied moves out: no other get() has it after that.
  T get(const where& at = where::current()) && {
    wait(at);
    return take();
  }

  detail::FutureState* state() const noexcept { return state_; }

  // co_await: the coroutine goes on as a task of the finish scope that it waited in. What it has is
  // what get() returns.
  auto operator co_await() const& { return Awaiter<std::add_lvalue_reference_t<const T>>(*this); }
  auto operator co_await() && { return Awaiter<T>(*this); }
  // A coroutine that returns a future begins at once, in its caller.
  struct promise_type;

 private:
  template <typename Result>
  struct Awaiter : detail::AwaitingTask {
    future for_what;
    detail::FutureState* state;
    std::coroutine_handle<> waiting;
    explicit Awaiter(const future& from) : for_what(from), state(from.state()) {}
    bool await_ready() const { return for_what.ready(); }
    void await_suspend(std::coroutine_handle<> handle) {
      waiting = handle;
      execute = [](detail::Task* self, bool) { static_cast<Awaiter*>(self)->waiting.resume(); };
      kind = detail::Kind::kAwaiting;
      awaited = &state;
      count = 1;
      body_type = "a coroutine";
      detail::spawn_awaiting(this);
    }
    Result await_resume() const {
      if constexpr (std::is_same_v<Result, T>) {
        return for_what.take();
      } else {
        return for_what.result();
      }
    }
  };

  T take() const {
    if constexpr (std::is_void_v<T> || std::is_copy_constructible_v<T>) {
      return result();
    } else {
      return std::move(const_cast<T&>(result()));
    }
  }
  std::add_lvalue_reference_t<const T> result() const {
    if (state_->error != nullptr) std::rethrow_exception(state_->error);
    if constexpr (!std::is_void_v<T>) return static_cast<detail::ValueState<T>*>(state_)->value();
  }
  detail::FutureState* state_ = nullptr;
};

// Where a value is put, once, from any thread. Destroyed without: broken_promise.
template <typename T>
class promise {
 public:
  promise() : state_(new detail::ValueState<T>) {}
  promise(promise&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  promise& operator=(promise other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~promise() {
    if (state_ == nullptr) return;
    if (!state_->claimed.load(std::memory_order_relaxed)) detail::break_promise(*state_, false);
    detail::drop(state_);
  }

  future<T> get_future() const noexcept {
    detail::retain(state_);
    return future<T>(state_);
  }
  // The second put of any kind throws std::logic_error.
  template <typename... Arguments>
  void put(Arguments&&... arguments) {
    claim();
    auto make = [&]() -> T { return T(std::forward<Arguments>(arguments)...); };
    detail::put_result<T>(state_, make);
  }
  void fail(std::exception_ptr error) {
    claim();
    state_->error = std::move(error);
    detail::make_ready(*state_);
  }

 private:
  void claim() {
    if (state_->claimed.exchange(true, std::memory_order_relaxed)) {
      throw std::logic_error("a promise takes one value, and this one has it");
    }
  }
  detail::FutureState* state_;
};

namespace detail {
template <typename T>
struct ReturnsValue {
  promise<T> result;
  template <typename Value>
  void return_value(Value&& value) {
    result.put(std::forward<Value>(value));
  }
};
template <>
struct ReturnsValue<void> {
  promise<void> result;
  void return_void() { result.put(); }
};
}  // namespace detail

template <typename T>
struct future<T>::promise_type : detail::ReturnsValue<T> {
  future get_return_object() { return this->result.get_future(); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; }
  void unhandled_exception() { this->result.fail(std::current_exception()); }
};

// A task of the caller's finish scope. What it throws leaves that finish.
template <typename Body>
void async(Body&& body) {
  detail::spawn(detail::ClosureTask<std::decay_t<Body>>::make(std::forward<Body>(body)));
}

// The same with what it returns, or throws, as a future.
template <typename Body>
auto async_future(Body&& body) {
  using T = std::invoke_result_t<std::decay_t<Body>&>;
  auto* const state = new detail::ValueState<T>;
  future<T> result(state);
  auto* const task =
      detail::ResultTask<T, std::decay_t<Body>>::make(std::forward<Body>(body), state);
  state->references.store(2, std::memory_order_relaxed);  // not yet seen by others
  detail::spawn(task);
  return result;
}

namespace detail {
template <std::size_t kCount, typename Body>
struct AwaitingBody {
  Body body;
  std::array<FutureState*, kCount> states;
  template <typename... Futures>
  AwaitingBody(Body from, const Futures&... futures)
      : body(std::move(from)), states{&state_of(futures.state())...} {
    for (FutureState* state : states) retain(state);
  }
  AwaitingBody(AwaitingBody&& other)
      : body(std::move(other.body)), states(std::exchange(other.states, {})) {}
  ~AwaitingBody() {
    for (FutureState* state : states) {
      if (state != nullptr) drop(state);
    }
  }
  decltype(auto) operator()() { return body(); }
};
template <typename TaskType>
void spawn_after(TaskType* task) {
  task->kind = Kind::kAwaiting;
  task->awaited = task->body.states.data();
  task->count = static_cast<std::uint32_t>(task->body.states.size());
  task->body_type = where::current().function_name();  // which names TaskType
  spawn_awaiting(task);
}
}  // namespace detail

// A task that begins when all the futures are ready: async_await(body, a, b, ...). It gets them
// itself; an exception in one does not keep it from running.
template <typename Body, typename... Futures>
void async_await(Body&& body, const Futures&... futures) {
  using Waiting = detail::AwaitingBody<sizeof...(Futures), std::decay_t<Body>>;
  detail::spawn_after(detail::ClosureTask<Waiting, detail::AwaitingTask>::make(
      Waiting(std::forward<Body>(body), futures...)));
}
template <typename Body, typename... Futures>
auto async_await_future(Body&& body, const Futures&... futures) {
  using T = std::invoke_result_t<std::decay_t<Body>&>;
  using Waiting = detail::AwaitingBody<sizeof...(Futures), std::decay_t<Body>>;
  auto* const state = new detail::ValueState<T>;
  future<T> result(state);
  auto* const task = detail::ResultTask<T, Waiting, detail::AwaitingTask>::make(
      Waiting(std::forward<Body>(body), futures...), state);
  state->references.store(2, std::memory_order_relaxed);
  detail::spawn_after(task);
  return result;
}

// Runs the body and waits for all tasks that are created in it, directly or by one another. Throws
// the first exception that left the body or one of the tasks; all are over by then.
template <typename Body>
void finish(Body&& body, const where& at = where::current()) {
  detail::FinishFrame frame;
  try {
    body();
  } catch (...) {
    frame.body_failed(std::current_exception());
  }
  frame.wait(at);
}
// Tasks that have not begun when a stop is requested do not run. Inner scopes inherit that, those
// with a token of their own, too.
template <typename Body>
void finish(std::stop_token stop, Body&& body, const where& at = where::current()) {
  detail::FinishFrame frame(std::move(stop));
  try {
    body();
  } catch (...) {
    frame.body_failed(std::current_exception());
  }
  frame.wait(at);
}
// Runs the body, and does not wait: the future is ready when finish() would return.
template <typename Body>
future<void> finish_future(Body&& body, std::stop_token stop = {}) {
  auto* const state = new detail::ValueState<void>;
  future<void> result(state);
  detail::retain(state);
  detail::DetachedFinish scope(state, std::move(stop));
  try {
    body();
  } catch (...) {
    scope.body_failed(std::current_exception());
  }
  return result;
}

// Lets other tasks run first, whoever made them; in the order in which they yielded.
AMASIA_TASKS_API void yield();
// Whether a stop is requested of the caller's finish scope: for tasks that have begun.
AMASIA_TASKS_API bool stop_requested();

template <std::size_t kDimensions>
struct range {
  std::array<std::ptrdiff_t, kDimensions> low{}, high{};
  // Of each piece that one task does without a break; 0: chosen.
  std::array<std::ptrdiff_t, kDimensions> tile{};
};

}  // namespace amasia::tasks

#include "amasia/tasks/forasync.hpp"
#include "amasia/tasks/places.hpp"
#include "amasia/tasks/runtime.hpp"
#include "amasia/tasks/statistics.hpp"
#include "amasia/tasks/tracing.hpp"
