// SPDX-License-Identifier: Apache-2.0
// pthread_getattr_np: what runs on a managed stack is told that one.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdint>

#include "omp/frame.hpp"
#include "omp/launch/function_slots.hpp"
#include "omp/launch/process.hpp"
#include "omp/launch/stack_bounds.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

using GetAttributes = int(pthread_t, pthread_attr_t*);

// Written before main begins, by the thread that executes it.
dsm::AddressRange stack_of_main{};
pthread_t thread_of_main{};

// The managed stack that the caller runs on; empty: it runs on its native one.
dsm::AddressRange own_stack() noexcept {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (stack_of_main.contains(here)) return stack_of_main;
  const ThreadFrame* const frame = thread_context.frame;
  if (frame == nullptr) return {};
  const dsm::AddressRange stack{reinterpret_cast<std::uintptr_t>(frame->stack_low),
                                reinterpret_cast<std::uintptr_t>(frame->stack_top)};
  return stack.contains(here) ? stack : dsm::AddressRange{};
}

bool executes_main(pthread_t thread) noexcept {
  return stack_of_main.size() > 0 && pthread_equal(thread, thread_of_main) != 0;
}

// In whatever object a variable of that address is. Where that fails it stays as it was.
void write_variable(const void* variable, std::uintptr_t value) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(variable);
  for (std::size_t i = 0; i < process.objects.size(); ++i) {
    const LoadedObject& object = process.objects[i];
    if (object.contains(address)) write_slot(object, address, value);
  }
}

}  // namespace

void tell_main_stack(dsm::AddressRange stack) noexcept {
  stack_of_main = stack;
  thread_of_main = pthread_self();
  constexpr const char* kName = "__libc_stack_end";
  // As the kernel has it, within the stack.
  const std::uintptr_t end = stack.end - 2 * sizeof(void*);
  // An executable may have a copy of its own, which others find then.
  const void* const found = dlsym(RTLD_DEFAULT, kName);
  if (found != nullptr) write_variable(found, end);
  void* const loader = dlopen("ld-linux-x86-64.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (loader == nullptr) return;
  const void* const own = dlsym(loader, kName);
  if (own != nullptr && own != found) write_variable(own, end);
  dlclose(loader);
}

dsm::AddressRange main_stack() noexcept { return stack_of_main; }

}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry point below is in no namespace

// Of another thread than the caller: its native stack, but for the one that executes main.
AMASIA_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  static constinit Real<GetAttributes> real{"pthread_getattr_np"};
  const int error = real(thread, attributes);
  if (error != 0 || !process.managed) return error;
  amasia::dsm::AddressRange stack{};
  if (pthread_equal(thread, pthread_self()) != 0) {
    stack = own_stack();
  } else if (executes_main(thread)) {
    stack = main_stack();
  }
  if (stack.size() == 0) return 0;
  return pthread_attr_setstack(attributes, reinterpret_cast<void*>(stack.begin), stack.size());
}
