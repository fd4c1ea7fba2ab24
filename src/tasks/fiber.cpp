// SPDX-License-Identifier: Apache-2.0
#include "tasks/fiber.hpp"

#include <cxxabi.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstring>

#include "base/base.hpp"

#if defined(__SANITIZE_THREAD__)
#define AMASIA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AMASIA_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define AMASIA_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AMASIA_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef AMASIA_THREAD_SANITIZER
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif
#ifdef AMASIA_ADDRESS_SANITIZER
extern "C" {
void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* save, const void** bottom, std::size_t* size);
void __asan_unpoison_memory_region(const volatile void* low, std::size_t size);
}
#endif

namespace amasia::tasks {
namespace {

namespace context = boost::context::detail;

// The Itanium C++ ABI's __cxa_eh_globals: what is caught, and how many are on their way.
struct ExceptionState {
  void* caught;
  unsigned uncaught;
};

// Not inlined: __cxa_get_globals is declared to give the same address always, which a switch ends.
[[gnu::noinline]] ExceptionState* exception_state() {
  auto* state = reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
  asm volatile("" : "+r"(state)::"memory");
  return state;
}

}  // namespace

struct FiberStart {
  // What a switch carries: who stopped, and who goes on.
  struct Message {
    Fiber* from;
    Fiber* to;
  };
  static void arrive(const context::transfer_t& transfer, Fiber* self) noexcept {
    static_cast<Message*>(transfer.data)->from->context_ = transfer.fctx;
#ifdef AMASIA_ADDRESS_SANITIZER
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(self->address_sanitizer_, &bottom, &size);
    Fiber* const from = static_cast<Message*>(transfer.data)->from;
    if (from->size_ == 0) {  // a thread's own stack, whose bounds are known only now
      from->asan_low_ = bottom;
      from->asan_size_ = size;
    }
#else
    static_cast<void>(self);
#endif
  }
  static void enter(context::transfer_t transfer) {
    Fiber* const self = static_cast<Message*>(transfer.data)->to;
    arrive(transfer, self);
    *exception_state() = {nullptr, 0};
    self->entry_(self->argument_);
    AMASIA_CHECK(false, "a fiber ends by switching away");
  }
};

Fiber::Fiber() noexcept {
#ifdef AMASIA_THREAD_SANITIZER
  thread_sanitizer_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void* low, std::size_t size, Entry entry, void* argument) noexcept
    : low_(reinterpret_cast<std::uintptr_t>(low)), size_(size), entry_(entry), argument_(argument) {
  context_ = context::make_fcontext(static_cast<char*>(low) + size, size, &FiberStart::enter);
#ifdef AMASIA_THREAD_SANITIZER
  thread_sanitizer_ = __tsan_create_fiber(0);
#endif
#ifdef AMASIA_ADDRESS_SANITIZER
  asan_low_ = low;
  asan_size_ = size;
  // Frames that never returned, of a stack that was unmapped, left their marks at this address.
  __asan_unpoison_memory_region(low, size);
#endif
}

Fiber::~Fiber() {
#ifdef AMASIA_THREAD_SANITIZER
  if (size_ != 0) __tsan_destroy_fiber(thread_sanitizer_);
#endif
#ifdef AMASIA_ADDRESS_SANITIZER
  // What is mapped at this address next may be another library's, which knows nothing of marks.
  if (size_ != 0) __asan_unpoison_memory_region(reinterpret_cast<void*>(low_), size_);
#endif
}

void Fiber::switch_to(Fiber& to) noexcept {
  const ExceptionState saved = *exception_state();
  FiberStart::Message message{this, &to};
#ifdef AMASIA_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&address_sanitizer_, to.asan_low_, to.asan_size_);
#endif
#ifdef AMASIA_THREAD_SANITIZER
  __tsan_switch_to_fiber(to.thread_sanitizer_, 0);
#endif
  const context::transfer_t back = context::jump_fcontext(to.context_, &message);
  FiberStart::arrive(back, this);
  *exception_state() = saved;
}

}  // namespace amasia::tasks
