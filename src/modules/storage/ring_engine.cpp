// SPDX-License-Identifier: Apache-2.0
// One thread owns the ring: it takes what was submitted, hands it to the kernel, and sleeps there
// until something completes. A submission from elsewhere rings an eventfd that the ring reads.
#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "modules/storage/engine.hpp"
#include "os/os.hpp"

namespace amasia::storage {
namespace {

constexpr unsigned kEntries = 64;

bool does_all(io_uring* ring) {
  io_uring_probe* const probe = io_uring_get_probe_ring(ring);
  if (probe == nullptr) return false;
  bool all = true;
  for (const int wanted : {IORING_OP_OPENAT, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC,
                           IORING_OP_RENAMEAT, IORING_OP_UNLINKAT, IORING_OP_CLOSE}) {
    all = all && io_uring_opcode_supported(probe, wanted) != 0;
  }
  io_uring_free_probe(probe);
  return all;
}

void prepare(io_uring_sqe* entry, const Request& request) {
  const auto bytes = static_cast<unsigned>(request.bytes);
  switch (request.kind) {
    case Request::Kind::kOpen:
      io_uring_prep_openat(entry, AT_FDCWD, request.path, request.flags | O_CLOEXEC, 0666);
      break;
    case Request::Kind::kRead:
      io_uring_prep_read(entry, request.descriptor, request.data, bytes, request.offset);
      break;
    case Request::Kind::kWrite:
      io_uring_prep_write(entry, request.descriptor, request.data, bytes, request.offset);
      break;
    case Request::Kind::kFlush:
      io_uring_prep_fsync(entry, request.descriptor, 0);
      break;
    case Request::Kind::kRename:
      io_uring_prep_renameat(entry, AT_FDCWD, request.path, AT_FDCWD, request.new_path, 0);
      break;
    case Request::Kind::kUnlink:
      io_uring_prep_unlinkat(entry, AT_FDCWD, request.path, 0);
      break;
    case Request::Kind::kClose:
      io_uring_prep_close(entry, request.descriptor);
      break;
  }
}

// All fields but submitted_ and ending_ belong to the thread once it runs.
class RingEngine : public Engine {
 public:
  RingEngine(io_uring ring, int bell) : ring_(ring), bell_(bell) {}
  // False: there is no thread.
  bool start() {
    auto started = os::Thread::start(
        [](void* engine) {
          os::set_thread_name("amasia-storage");
          static_cast<RingEngine*>(engine)->serve();
        },
        this);
    if (!started.ok()) return false;
    thread_ = std::move(started).value();
    return true;
  }
  ~RingEngine() override {
    ending_.store(true, std::memory_order_release);
    ring_bell();
    thread_.join();
    io_uring_queue_exit(&ring_);
    ::close(bell_);
  }
  engine_kind kind() const noexcept override { return engine_kind::io_uring; }

  void submit(Request* request) override {
    Request* head = submitted_.load(std::memory_order_relaxed);
    do {
      request->next = head;
      // Release: the thread reads the request. Partner: take_submitted().
    } while (!submitted_.compare_exchange_weak(head, request, std::memory_order_release,
                                               std::memory_order_relaxed));
    // Only the first since the thread looked needs to say so; the thread itself looks anyhow.
    if (head == nullptr && os::current_thread_id() != thread_id_.load(std::memory_order_relaxed)) {
      ring_bell();
    }
  }

 private:
  void ring_bell() {
    const std::uint64_t one = 1;
    while (::write(bell_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  void listen() {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, bell_, &rung_, sizeof rung_, 0);
    io_uring_sqe_set_data(entry, nullptr);
  }
  void take_submitted() {
    Request* taken = submitted_.exchange(nullptr, std::memory_order_acquire);
    Request* in_order = nullptr;
    while (taken != nullptr) {
      Request* const next = taken->next;
      taken->next = in_order;
      in_order = std::exchange(taken, next);
    }
    while (in_order != nullptr) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) {
        io_uring_submit(&ring_);
        entry = io_uring_get_sqe(&ring_);
      }
      prepare(entry, *in_order);
      io_uring_sqe_set_data(entry, in_order);
      in_order = in_order->next;
    }
  }
  void serve() {
    thread_id_.store(os::current_thread_id(), std::memory_order_relaxed);
    listen();
    while (!ending_.load(std::memory_order_acquire)) {
      take_submitted();
      io_uring_submit_and_wait(&ring_, 1);
      io_uring_cqe* event = nullptr;
      while (io_uring_peek_cqe(&ring_, &event) == 0) {
        auto* const request = static_cast<Request*>(io_uring_cqe_get_data(event));
        const long result = event->res;
        io_uring_cqe_seen(&ring_, event);
        if (request == nullptr) {
          listen();
          continue;
        }
        request->result = result;
        request->waiting.resume();
      }
    }
  }

  io_uring ring_;
  const int bell_;
  std::uint64_t rung_ = 0;
  std::atomic<int> thread_id_{0};
  std::atomic<Request*> submitted_{nullptr};
  std::atomic<bool> ending_{false};
  os::Thread thread_;
};

}  // namespace

std::unique_ptr<Engine> make_ring_engine() {
  io_uring ring;
  if (io_uring_queue_init(kEntries, &ring, 0) != 0) return nullptr;
  const int bell = does_all(&ring) ? ::eventfd(0, EFD_CLOEXEC) : -1;
  if (bell < 0) {
    io_uring_queue_exit(&ring);
    return nullptr;
  }
  auto engine = std::make_unique<RingEngine>(ring, bell);
  if (!engine->start()) return nullptr;
  return engine;
}

}  // namespace amasia::storage
