// SPDX-License-Identifier: Apache-2.0
// Leaving a managed stack. A thread on a managed stack can fault at any push, and the fault is
// served by the engine's service thread. So whoever holds a lock that the service thread may want
// (the fabric's, the node's), or helps the engine, must do so on a native stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "omp/frame.hpp"
#include "omp/launch/stack_switch.hpp"

namespace amasia::omp {

// Calls `function()` on the thread's native stack; at once if the thread is there already.
// `function` must not throw. What it refers to on the managed stack is still the managed stack:
// copy in and out, and hold no lock when touching it.
template <typename Function>
void on_native_stack(Function&& function) {
  void* const native = thread_context.native_stack;
  if (native == nullptr) {
    function();
    return;
  }
  using Plain = std::remove_reference_t<Function>;
  thread_context.native_stack = nullptr;
  call_on_stack(
      native, [](void* it) { (*static_cast<Plain*>(it))(); },
      const_cast<void*>(static_cast<const void*>(&function)));
  thread_context.native_stack = native;
}

// Calls `function()` on the managed stack that ends at `top`, and notes where the native one was.
// The call may also be ended from the native stack, by restoring `home`.
template <typename Function>
void on_managed_stack(std::byte* top, Function&& function, ThreadState* home = nullptr) {
  using Plain = std::remove_reference_t<Function>;
  void* const native = thread_context.native_stack;
  // Below the stack pointer the native stack is free while the thread is on the other one; the
  // distance leaves room for call_on_stack's own frame.
  std::byte* stack_pointer;
  asm volatile("movq %%rsp, %0" : "=r"(stack_pointer));
  thread_context.native_stack = stack_pointer - 512;
  const auto call = [](void* it) { (*static_cast<Plain*>(it))(); };
  void* const it = const_cast<void*>(static_cast<const void*>(&function));
  if (home == nullptr) {
    call_on_stack(top, call, it);
  } else {
    amasia_switch(top, call, it, home);
  }
  thread_context.native_stack = native;
}

// For a fork that is passed down: the runtime works on the native stack, where what it allocates
// and locks is cheap and safe, and the forking thread's part of the region goes back to the managed
// one, since the program's variables there are to be the same in every region.
class RegionStack {
 public:
  // On the forking thread's stack, which stays as it is until the region has ended.
  RegionStack() : owner_(&thread_context) {
    if (thread_context.native_stack == nullptr) return;
    std::byte* stack_pointer;
    asm volatile("movq %%rsp, %0" : "=r"(stack_pointer));
    // Room for the frames that lead to the native stack, and a multiple of 64.
    const auto here = reinterpret_cast<std::uintptr_t>(stack_pointer) - kRoom;
    top_ = reinterpret_cast<std::byte*>(here & ~std::uintptr_t{63});
  }
  // On any thread of the region.
  template <typename Function>
  void call(Function&& function) const {
    const bool is_owner = owner_ == &thread_context;
    if (top_ == nullptr || !is_owner || thread_context.native_stack != nullptr) return function();
    on_managed_stack(top_, function);
  }

 private:
  static constexpr std::uintptr_t kRoom = 2048;
  const ThreadContext* owner_;
  std::byte* top_ = nullptr;
};

}  // namespace amasia::omp
