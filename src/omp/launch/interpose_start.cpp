// SPDX-License-Identifier: Apache-2.0
// The program's start and end: the constructor that comes before all others, __libc_start_main, and
// the ways in which a program leaves.
#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "omp/frame.hpp"
#include "omp/launch/finish.hpp"
#include "omp/launch/image.hpp"
#include "omp/launch/main_stack.hpp"
#include "omp/launch/node_process.hpp"
#include "omp/launch/process.hpp"
#include "omp/launch/threads.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

using StartMain = int(MainFunction, int, char**, void (*)(), void (*)(), void (*)(), void*);

MainFunction program_main = nullptr;

// The library is linked with -z initfirst: this runs before the constructors of all libraries,
// which may allocate.
__attribute__((constructor(101))) void library_constructor(int, char**, char** environment) {
  early_start(environment);
}

// Called by exit() as the last of its functions, in the place of the loader's.
void finish_program(void*, int status) {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  run_program_destructors(!NodeProcess::ends_for_another_node());
  if (node != nullptr) node->finish_output();
  // As exit does: flushes, and leaves seekable input where the program stopped reading.
  fcloseall();
  if (node != nullptr) {
    process.node.store(nullptr, std::memory_order_release);
    set_process_node(nullptr);
    // Not on a managed stack: nobody serves its faults any more.
    os::in_runtime_section([node, status] {
      node->end_in_order();
      real_exit_now(status);
    });
  }
  real_exit_now(status);
}

// Without a launcher: managed memory, but nothing to share it with.
void manage_globals_alone() {
  auto ranges = global_ranges(process.objects);
  if (!ranges.ok()) fail_start(ranges.error().message);
  for (const dsm::AddressRange& range : ranges.value()) {
    if (!process.space.add_globals(range).ok()) fail_start("cannot make the globals managed");
  }
}

// pthread_exit in main unwinds through this frame. The process is to end with the last thread of
// the program, but the runtime's threads would keep it for ever.
class EndWithLastThread {
 public:
  ~EndWithLastThread() {
    if (returned) return;
    wait_for_program_threads();
    std::exit(0);
  }
  bool returned = false;
};

void delegate_calls_of_program() {
  NodeProcess* const node = process.node.load(std::memory_order_relaxed);
  if (node == nullptr) return;
  if (const Status caught = node->delegate_calls(); !caught.ok()) {
    fail_start(caught.error().message);
  }
}

int node_main(int count, char** values, char** environment) {
  return_signals();
  if (process.membership != nullptr) {
    auto started = NodeProcess::start(process);
    if (!started.ok()) fail_start(started.error().message);
    NodeProcess* const node = std::move(started).value().release();
    process.node.store(node, std::memory_order_release);
    set_process_node(&node->node(), node->node().locks());
    if (process.space.self() != base::kOrigin) {
      node->serve();
      real_exit_now(0);
    }
  } else {
    manage_globals_alone();
  }
  const MainArguments arguments = copy_arguments(process.heap, {count, values, environment});
  publish_environment();
  make_key_table();
  return_descriptors();
  delegate_calls_of_program();
  EndWithLastThread guard;
  const dsm::AddressRange stack = plan_stacks(process.space.stacks(process.space.self())).main;
  const int result = run_main(stack, program_main, arguments);
  guard.returned = true;
  return result;
}

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

// Both versions of the symbol (2.2.5 and 2.34) take the same arguments and are one function.
AMASIA_EXPORT int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                    void (*init)(), void (*fini)(), void (*loader_fini)(),
                                    void* stack_end) {
  static constinit Real<StartMain> real{"__libc_start_main"};
  if (!process.managed) return real(main, argc, argv, init, fini, loader_fini, stack_end);
  program_main = main;
  // exit() passes its status to functions that were registered with __cxa_atexit, as this one is.
  return real(&node_main, argc, argv, init, fini, reinterpret_cast<void (*)()>(&finish_program),
              stack_end);
}

namespace {

// On a node other than the origin the program's wish to end is the whole job's.
void leave(int status, EndKind kind) {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  if (node != nullptr && process.space.self() != amasia::base::kOrigin) {
    node->end_job_from_here(status, kind);
  }
}

// exit may be called once, but for its own handlers; threads of several nodes may do it at once.
void be_the_one_that_ends() {
  static constinit std::atomic<int> ending{0};
  int none = 0;
  const int self = amasia::os::current_thread_id();
  // Relaxed: only one of those who ask matters, and nothing hangs on what it did before.
  if (ending.compare_exchange_strong(none, self, std::memory_order_relaxed) || none == self) return;
  for (;;) pause();
}

}  // namespace

AMASIA_EXPORT void exit(int status) {
  static constinit Real<void(int)> real{"exit"};
  leave(status, EndKind::kInOrder);
  if (process.node.load(std::memory_order_acquire) != nullptr) be_the_one_that_ends();
  real(status);
  __builtin_unreachable();
}

AMASIA_EXPORT void _exit(int status) {
  leave(status, EndKind::kImmediate);
  real_exit_now(status);
}

AMASIA_EXPORT void _Exit(int status) {
  leave(status, EndKind::kImmediate);
  real_exit_now(status);
}

AMASIA_EXPORT void quick_exit(int status) {
  static constinit Real<void(int)> real{"quick_exit"};
  leave(status, EndKind::kQuick);
  real(status);
  __builtin_unreachable();
}
