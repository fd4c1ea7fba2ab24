// SPDX-License-Identifier: Apache-2.0
// Who carries out system calls on files: threads, or a ring of the kernel (io_uring). An operation
// is a coroutine that awaits one request after the other; it goes on with whichever thread of the
// engine completed the request.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "amasia/storage.hpp"

namespace amasia::storage {

struct Request {
  enum class Kind : std::uint8_t { kOpen, kRead, kWrite, kFlush, kRename, kUnlink, kClose };
  Kind kind = Kind::kClose;
  int descriptor = -1;
  void* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t offset = 0;
  const char* path = nullptr;
  const char* new_path = nullptr;
  int flags = 0;

  long result = 0;  // what the call gave, or -errno
  std::coroutine_handle<> waiting = nullptr;
  Request* next = nullptr;  // in the engine's queue
};

class Engine {
 public:
  virtual ~Engine() = default;  // when no request is outstanding
  virtual engine_kind kind() const noexcept = 0;
  // Any thread. The request is the caller's until its coroutine goes on.
  virtual void submit(Request* request) = 0;
};

std::unique_ptr<Engine> make_thread_engine();
// Null where the kernel allows none, or one that lacks a kind of request.
std::unique_ptr<Engine> make_ring_engine();

// co_await Perform(engine, request): its result.
class Perform {
 public:
  Perform(Engine& engine, const Request& request) : engine_(engine), request_(request) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    request_.waiting = waiting;
    engine_.submit(&request_);
  }
  long await_resume() const noexcept { return request_.result; }

 private:
  Engine& engine_;
  Request request_;
};

// A coroutine that begins at once and that nobody waits for.
struct Job {
  struct promise_type {
    Job get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }  // out of memory
  };
};

}  // namespace amasia::storage
