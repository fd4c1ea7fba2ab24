// SPDX-License-Identifier: Apache-2.0
#include "os/runtime_stack.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include "base/base.hpp"
#include "os/thread.hpp"

// Defined in runtime_stack_call.S: calls function(argument) with the stack pointer at `top`.
extern "C" void amasia_os_call_on_stack(void* top, void (*function)(void*), void* argument);

namespace amasia::os {
namespace {

// The lowest address of the thread's section stack; nullptr: not mapped. It has no destructor, so
// that sections work until the thread's very end: other thread-local objects are destroyed after
// the one below, and exit() runs its functions after the main thread's. Such a late stack is lost.
thread_local constinit void* section_stack = nullptr;

// Unmaps the stack when the thread's objects are destroyed.
class SectionStackEnd {
 public:
  constexpr SectionStackEnd() = default;
  SectionStackEnd(const SectionStackEnd&) = delete;
  SectionStackEnd& operator=(const SectionStackEnd&) = delete;
  ~SectionStackEnd() {
    if (section_stack != nullptr) ::munmap(section_stack, kRuntimeStackSize);
    section_stack = nullptr;
  }
  // Registers the destructor.
  void touch() noexcept { asm volatile("" : : "r"(this)); }
};
thread_local constinit SectionStackEnd section_stack_end;

void* section_stack_top() {
  if (section_stack == nullptr) {
    section_stack_end.touch();
    section_stack = ::mmap(nullptr, kRuntimeStackSize, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    AMASIA_CHECK(section_stack != MAP_FAILED, "no memory for a runtime stack of 512 KiB");
    ::mprotect(section_stack, base::kPageSize, PROT_NONE);  // the guard page
  }
  return static_cast<std::byte*>(section_stack) + kRuntimeStackSize;
}

thread_local constinit bool in_section = false;

}  // namespace

void declare_runtime_thread() noexcept { in_section = true; }

bool is_in_runtime_section() noexcept { return in_section; }

void run_in_runtime_section(void (*function)(void*), void* argument) noexcept {
  if (in_section) {
    function(argument);
    return;
  }
  void* const top = section_stack_top();
  int cancellation = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  const unsigned long signals = block_signals();
  in_section = true;
  amasia_os_call_on_stack(top, function, argument);
  in_section = false;
  restore_signals(signals);
  ::pthread_setcancelstate(cancellation, nullptr);
}

}  // namespace amasia::os
