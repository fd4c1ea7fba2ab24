// SPDX-License-Identifier: Apache-2.0
// fork and what the C library builds upon it. vfork, posix_spawn, system and popen need no help on
// the origin: their child borrows the parent's memory until it executes something.
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <unistd.h>
#include <utmp.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "omp/frame.hpp"
#include "omp/launch/fork_copy.hpp"
#include "omp/launch/node_process.hpp"
#include "omp/launch/origin_only.hpp"
#include "omp/launch/process.hpp"
#include "omp/launch/threads.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

// A fork under way in this thread; the handlers that the C library calls find it here.
struct Fork {
  ForkCopy copy;
  os::Pair done;  // the child closes `second` when it has its copies
};
thread_local Fork* fork_under_way = nullptr;

void in_parent() {
  if (fork_under_way == nullptr) return;
  fork_under_way->done.second.close();
  char nothing;
  while (read(fork_under_way->done.first.get(), &nothing, 1) < 0 && errno == EINTR) {
  }
}

// Comes before the handlers of the program and of its libraries, which touch managed memory.
void in_child() {
  if (!process.managed || process.is_child) return;
  if (fork_under_way == nullptr) {
    // Some part of the C library has forked by itself; the child would share its parent's stack.
    base::log_line(base::LogLevel::kError, "this way to fork is not possible under amasia run");
    real_exit_now(127);
  }
  if (!fork_under_way->copy.carry_out()) {
    base::log_line(base::LogLevel::kError, "no memory for the child's copies after fork");
    real_exit_now(127);
  }
  process.is_child = true;
  process.node.store(nullptr, std::memory_order_relaxed);  // the child has one thread
  set_process_node(nullptr);
  fork_under_way->done.second.close();
}

// Handlers run in the child in the order of registration, so this one is the first.
__attribute__((constructor(102))) void register_handlers() {
  if (process.managed) pthread_atfork(nullptr, in_parent, in_child);
}

// All memory here, and what of it is to be copied. In a region other nodes' threads may take pages
// away meanwhile; those are fetched again, but not for ever.
Result<ForkCopy> prepare_copy() {
  constexpr int kAttempts = 4;
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  if (node != nullptr) node->fetch_memory();
  for (int attempt = 1;; ++attempt) {
    auto copy = ForkCopy::prepare(process.space);
    if (!copy.ok() || node == nullptr || attempt == kAttempts) return copy;
    const std::vector<dsm::PageRun> missing = copy.value().missing();
    if (missing.empty()) return copy;
    node->fetch(missing);
  }
}

pid_t fork_with_copies() {
  static constinit Real<pid_t()> real{"fork"};
  if (!process.managed || process.is_child) return real();
  if (refuses_on_this_node("fork")) {
    errno = EPERM;
    return -1;
  }
  pid_t child = -1;
  int error = 0;
  // Parent and child return to the same managed stack: by then the child has its own.
  static constinit std::mutex one_at_a_time;
  os::in_runtime_section([&] {
    const std::lock_guard lock(one_at_a_time);
    auto copy = prepare_copy();
    auto pipe = os::make_pipe();
    if (!copy.ok() || !pipe.ok()) {
      error = EAGAIN;
      return;
    }
    Fork fork{std::move(copy).value(), std::move(pipe).value()};
    fork_under_way = &fork;
    const pid_t forked = real();
    const int failed = errno;
    fork_under_way = nullptr;
    child = forked;
    error = failed;
  });
  if (child < 0) errno = error;
  return child;
}

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT pid_t fork() noexcept { return fork_with_copies(); }

// As in the C library, which forks without asking us. The parent's end is the job's; the child goes
// on alone.
AMASIA_EXPORT int daemon(int keep_directory, int keep_streams) noexcept {
  static constinit Real<int(int, int)> real{"daemon"};
  if (!process.managed || process.is_child) return real(keep_directory, keep_streams);
  const pid_t child = fork_with_copies();
  if (child < 0) return -1;
  if (child > 0) real_exit_now(0);
  if (setsid() < 0) return -1;
  if (keep_directory == 0 && chdir("/") != 0) return -1;
  if (keep_streams != 0) return 0;
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return -1;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, stream);
  if (null > STDERR_FILENO) close(null);
  return 0;
}

AMASIA_EXPORT int forkpty(int* terminal, char* name, const termios* settings,
                          const winsize* size) noexcept {
  int outer = -1;
  int inner = -1;
  if (openpty(&outer, &inner, name, settings, size) != 0) return -1;
  const pid_t child = fork_with_copies();
  if (child == 0) {
    close(outer);
    if (login_tty(inner) != 0) real_exit_now(1);
    return 0;
  }
  close(inner);
  if (child < 0) {
    close(outer);
  } else {
    *terminal = outer;
  }
  return child;
}
