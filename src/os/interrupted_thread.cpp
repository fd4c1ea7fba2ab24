// SPDX-License-Identifier: Apache-2.0
#include "os/interrupted_thread.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cstring>

#if !defined(__x86_64__)
#error "interrupted_thread.cpp has no version for this architecture yet"
#endif

namespace amasia::os {
namespace {

// Of asm/sigcontext.h, which cannot be included beside the C library's: how large the processor's
// state is, in its legacy part (offset 464), and what ends it.
struct SoftwareBytes {
  std::uint32_t magic = 0;
  std::uint32_t extended_size = 0;  // of all, with the magic number at the end
  std::uint64_t features = 0;
  std::uint32_t size = 0;
  std::uint32_t padding[7] = {};
};
static_assert(sizeof(SoftwareBytes) == 48);
constexpr std::size_t kSoftwareBytesAt = 464, kLegacySize = 512;
constexpr std::uint32_t kMagic = 0x46505853;
// Of asm/ucontext.h: the kernel says so of its own frames, and looks at what we give it so.
constexpr unsigned long kHasExtended = 1, kHasStackSegment = 2, kStrictStackSegment = 4;

constexpr std::size_t kRegisters = sizeof(mcontext_t::gregs);

// What the kernel puts on the stack, from the address at which rt_sigreturn expects the stack
// pointer: its ucontext is shorter than the C library's (the mask has 8 bytes).
struct Frame {
  unsigned long flags = 0;
  ucontext_t* link = nullptr;
  stack_t stack{};
  gregset_t registers{};
  void* processor_state = nullptr;
  std::uint64_t reserved[8] = {};
  std::uint64_t mask = 0;
};
static_assert(offsetof(Frame, registers) == offsetof(ucontext_t, uc_mcontext.gregs));
static_assert(offsetof(Frame, processor_state) == offsetof(ucontext_t, uc_mcontext.fpregs));
static_assert(offsetof(Frame, mask) == offsetof(ucontext_t, uc_sigmask));

ucontext_t& context_of(void* context) { return *static_cast<ucontext_t*>(context); }

std::size_t processor_state_size(const void* processor_state) {
  SoftwareBytes software;
  std::memcpy(&software, static_cast<const std::byte*>(processor_state) + kSoftwareBytesAt,
              sizeof software);
  return software.magic == kMagic ? software.extended_size : kLegacySize;
}

}  // namespace

std::uintptr_t InterruptedThread::instruction() const {
  return static_cast<std::uintptr_t>(context_of(context_).uc_mcontext.gregs[REG_RIP]);
}

std::uintptr_t InterruptedThread::stack_pointer() const {
  return static_cast<std::uintptr_t>(context_of(context_).uc_mcontext.gregs[REG_RSP]);
}

InterruptedThread::Registers InterruptedThread::registers() const {
  static_assert(REG_R8 == 0 && REG_RIP == 16);
  Registers registers;
  std::memcpy(registers.data(), context_of(context_).uc_mcontext.gregs, sizeof registers);
  return registers;
}

std::size_t InterruptedThread::size() const {
  return kRegisters + processor_state_size(context_of(context_).uc_mcontext.fpregs);
}

void InterruptedThread::keep(std::span<std::byte> state) const {
  const mcontext_t& machine = context_of(context_).uc_mcontext;
  std::memcpy(state.data(), machine.gregs, kRegisters);
  std::memcpy(state.data() + kRegisters, machine.fpregs, state.size() - kRegisters);
}

bool InterruptedThread::is_at_system_call() const {
  const auto* const code = reinterpret_cast<const unsigned char*>(instruction());
  return code[0] == 0x0f && code[1] == 0x05;
}

void InterruptedThread::set_single_step(bool on) const {
  constexpr greg_t kTrapFlag = 0x100;
  greg_t& flags = context_of(context_).uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | kTrapFlag : flags & ~kTrapFlag;
}

void InterruptedThread::redirect(void (*function)(void*), void* argument, void* stack_top) const {
  gregset_t& registers = context_of(context_).uc_mcontext.gregs;
  // As after a call: the return address, 0, is below an aligned stack pointer.
  auto* const top = static_cast<std::uint64_t*>(stack_top) - 1;
  *top = 0;
  registers[REG_RIP] = reinterpret_cast<greg_t>(function);
  registers[REG_RDI] = reinterpret_cast<greg_t>(argument);
  registers[REG_RSP] = reinterpret_cast<greg_t>(top);
  registers[REG_RBP] = 0;
  registers[REG_EFL] &= ~greg_t{0x400};  // functions begin with the direction flag clear
}

std::uint64_t register_sets() noexcept {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

void go_on(std::span<const std::byte> state) {
  // The processor wants its state at a multiple of 64 bytes.
  const std::size_t size = state.size() - kRegisters;
  auto* const room = static_cast<std::byte*>(__builtin_alloca(size + 64));
  auto* const aligned =
      reinterpret_cast<std::byte*>(base::round_up(reinterpret_cast<std::uintptr_t>(room), 64));
  std::memcpy(aligned, state.data() + kRegisters, size);
  alignas(16) Frame frame;
  frame.flags = kHasExtended | kHasStackSegment | kStrictStackSegment;
  frame.processor_state = aligned;
  std::memcpy(frame.registers, state.data(), kRegisters);
  // This thread's own stay.
  ::sigaltstack(nullptr, &frame.stack);
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::memcpy(&frame.mask, &mask, sizeof frame.mask);
  asm volatile(
      "movq %0, %%rsp\n\t"
      "movl %1, %%eax\n\t"
      "syscall"
      :
      : "r"(&frame), "i"(SYS_rt_sigreturn)
      : "memory");
  __builtin_unreachable();
}

}  // namespace amasia::os
