// SPDX-License-Identifier: Apache-2.0
// A thread of a module's own for calls that block, such as compilers: one at a time, in order.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "amasia/module.h"
#include "os/os.hpp"

namespace amasia {

// Any thread. The thread starts with the first call, and ends with the object, after the last.
class BlockingCalls {
 public:
  explicit BlockingCalls(const char* thread_name) : thread_name_(thread_name) {}
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;
  ~BlockingCalls() {
    stopping_.store(true);
    posts_.fetch_add(1);
    os::futex_wake(posts_, 1);
    thread_.join();
  }

  // What body() returns or throws, as a future; the hold is dropped when it is ready.
  template <typename Body>
  auto call(tasks::hold held, Body body) -> tasks::future<std::invoke_result_t<Body&>> {
    using T = std::invoke_result_t<Body&>;
    auto job = std::make_shared<Job<T, Body>>(std::move(held), std::move(body));
    auto value = job->result.get_future();
    {
      const os::MutexLock lock(mutex_);
      if (!thread_.joinable()) {
        auto started = os::Thread::start(&BlockingCalls::serve, this);
        if (!started.ok()) throw std::runtime_error(started.error().message);
        thread_ = std::move(started).value();
      }
      jobs_.push_back([job] { job->run(); });
    }
    posts_.fetch_add(1);  // partner: serve(), which reads it before it looks
    os::futex_wake(posts_, 1);
    return value;
  }

 private:
  template <typename T, typename Body>
  struct Job {
    Job(tasks::hold its_hold, Body its_body)
        : held(std::move(its_hold)), body(std::move(its_body)) {}
    void run() noexcept {
      try {
        if constexpr (std::is_void_v<T>) {
          body();
          result.put();
        } else {
          result.put(body());
        }
      } catch (...) {
        result.fail(std::current_exception());
      }
      held.release();
    }
    tasks::promise<T> result;
    tasks::hold held;
    Body body;
  };

  static void serve(void* calls) {
    auto& self = *static_cast<BlockingCalls*>(calls);
    os::set_thread_name(self.thread_name_);
    for (;;) {
      const std::uint32_t seen = self.posts_.load();
      std::function<void()> next;
      {
        const os::MutexLock lock(self.mutex_);
        if (!self.jobs_.empty()) {
          next = std::move(self.jobs_.front());
          self.jobs_.pop_front();
        }
      }
      if (next) {
        next();
      } else if (self.stopping_.load()) {
        return;
      } else {
        os::futex_wait(self.posts_, seen, -1);
      }
    }
  }

  const char* const thread_name_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> posts_{0};
  os::Mutex mutex_;
  std::deque<std::function<void()>> jobs_ AMASIA_GUARDED_BY(mutex_);
  os::Thread thread_;  // written under the mutex, joined by the end
};

}  // namespace amasia
