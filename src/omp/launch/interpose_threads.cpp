// SPDX-License-Identifier: Apache-2.0
// pthread_create: to know the program's threads from those of the runtime.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "omp/launch/process.hpp"
#include "omp/launch/threads.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

using StartRoutine = void* (*)(void*);
using Create = int(pthread_t*, const pthread_attr_t*, StartRoutine, void*);

// Threads of the program that have not ended. Relaxed increments; release when one ends, acquire
// by who waits for all.
std::atomic<std::uint32_t> program_threads{0};

struct Start {
  StartRoutine routine;
  void* argument;
  bool of_runtime;
};

// Counted down however the thread ends: return, pthread_exit, cancellation.
class CountedThread {
 public:
  CountedThread() = default;
  ~CountedThread() {
    program_threads.fetch_sub(1, std::memory_order_release);
    os::futex_wake(program_threads, INT_MAX);
  }
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;
};

bool is_openmp_runtime(const void* code) {
  Dl_info info{};
  return dladdr(code, &info) != 0 &&
         launch::openmp_runtime_of(info.dli_fname) != launch::OpenMpRuntime::kNone;
}

void* run_thread(void* argument) {
  auto* const given = static_cast<Start*>(argument);
  const Start start = *given;
  delete given;
  if (start.of_runtime) {
    os::declare_runtime_thread();
    return start.routine(start.argument);
  }
  const CountedThread counted;
  return start.routine(start.argument);
}

}  // namespace

void wait_for_program_threads() noexcept {
  for (;;) {
    const std::uint32_t count = program_threads.load(std::memory_order_acquire);
    if (count == 0) return;
    os::futex_wait(program_threads, count, -1);
  }
}

Status start_program_thread(pthread_t& thread, void* (*function)(void*), void* argument,
                            std::span<const int> cores) noexcept {
  static constinit Real<Create> real{"pthread_create"};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<unsigned>(core), &set);
  if (!cores.empty()) pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  const int reason = real(&thread, &attributes, function, argument);
  pthread_attr_destroy(&attributes);
  if (reason != 0) return base::errno_error(reason, "the system has no thread to give");
  return base::ok();
}

Status run_on_program_thread(void (*function)(void*), void* argument) noexcept {
  struct Call {
    void (*function)(void*);
    void* argument;
  } call{function, argument};
  pthread_t thread{};
  const auto routine = [](void* given) -> void* {
    static_cast<Call*>(given)->function(static_cast<Call*>(given)->argument);
    return nullptr;
  };
  if (Status started = start_program_thread(thread, routine, &call); !started.ok()) return started;
  pthread_join(thread, nullptr);
  return base::ok();
}

void real_exit_now(int status) noexcept {
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry point below is in no namespace

AMASIA_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                 void* (*routine)(void*), void* argument) noexcept {
  static constinit Real<Create> real{"pthread_create"};
  if (!process.managed) return real(thread, attributes, routine, argument);
  const void* const caller = __builtin_return_address(0);
  // Threads of an OpenMP runtime execute the program.
  const bool of_runtime = process.objects.allocates_privately(caller) && !is_openmp_runtime(caller);
  auto* const start = new Start{routine, argument, of_runtime};
  if (!of_runtime) program_threads.fetch_add(1, std::memory_order_relaxed);
  const int error = real(thread, attributes, run_thread, start);
  if (error != 0) {
    if (!of_runtime) program_threads.fetch_sub(1, std::memory_order_release);
    delete start;
  }
  return error;
}
