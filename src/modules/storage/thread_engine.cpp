// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "modules/storage/engine.hpp"
#include "os/os.hpp"

namespace amasia::storage {
namespace {

constexpr std::size_t kThreads = 4;

long perform(const Request& request) {
  const auto offset = static_cast<off_t>(request.offset);
  switch (request.kind) {
    case Request::Kind::kOpen:
      return ::open(request.path, request.flags | O_CLOEXEC, 0666);
    case Request::Kind::kRead:
      return ::pread(request.descriptor, request.data, request.bytes, offset);
    case Request::Kind::kWrite:
      return ::pwrite(request.descriptor, request.data, request.bytes, offset);
    case Request::Kind::kFlush:
      return ::fsync(request.descriptor);
    case Request::Kind::kRename:
      return std::rename(request.path, request.new_path);
    case Request::Kind::kUnlink:
      return ::unlink(request.path);
    case Request::Kind::kClose:
      return ::close(request.descriptor);
  }
  return -1;
}

// Guarded by mutex_: the queue and ending_.
class ThreadEngine : public Engine {
 public:
  ThreadEngine() {
    for (auto& thread : threads_) {
      auto started = os::Thread::start(
          [](void* engine) {
            os::set_thread_name("amasia-storage");
            static_cast<ThreadEngine*>(engine)->serve();
          },
          this);
      if (!started.ok()) {
        end();
        throw std::runtime_error("storage: " + started.error().message);
      }
      thread = std::move(started).value();
    }
  }
  ~ThreadEngine() override { end(); }
  engine_kind kind() const noexcept override { return engine_kind::threads; }

  void submit(Request* request) override {
    {
      const std::lock_guard lock(mutex_);
      request->next = nullptr;
      (first_ == nullptr ? first_ : last_->next) = request;
      last_ = request;
    }
    there_.notify_one();
  }

 private:
  void serve() {
    for (;;) {
      Request* request = nullptr;
      {
        std::unique_lock lock(mutex_);
        there_.wait(lock, [&] { return first_ != nullptr || ending_; });
        if (first_ == nullptr) return;
        request = first_;
        first_ = request->next;
      }
      const long result = perform(*request);
      request->result = result < 0 ? -errno : result;
      request->waiting.resume();
    }
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    there_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  std::mutex mutex_;
  std::condition_variable there_;
  Request* first_ = nullptr;
  Request* last_ = nullptr;
  bool ending_ = false;
  std::array<os::Thread, kThreads> threads_;
};

}  // namespace

std::unique_ptr<Engine> make_thread_engine() { return std::make_unique<ThreadEngine>(); }

}  // namespace amasia::storage
