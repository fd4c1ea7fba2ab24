// SPDX-License-Identifier: Apache-2.0
#include "omp/code/idle_thread.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>

namespace amasia::omp {
namespace {

// Regions as gcc 12 writes them, shortened: the loop has as many iterations as `data` says, and
// would add to what stands after that.
extern "C" void idle_adds_numbers();
extern "C" void idle_adds_reals();
extern "C" void idle_takes_the_most();
extern "C" void idle_reduces_two();
extern "C" void idle_has_an_array();
extern "C" void idle_does_nothing();
extern "C" void idle_calls_its_own();
extern "C" void idle_counts_threads();
extern "C" void idle_counts_threads_who_work();
extern "C" void idle_adds_what_is_there();
extern "C" void idle_prints();
extern "C" void idle_never_ends();
extern "C" void idle_has_no_loop();
extern "C" void idle_has_two_counts();

asm(R"(
  .pushsection .text
  .macro idle_calls name
    call *idle_slot_\name(%rip)
  .endm
  .macro idle_begins count=(%rdi)  # no iterations: to the next 2; data in rbx
    push %rbx
    push %r12
    sub $0x108, %rsp
    mov %rdi, %rbx
    mov \count, %r12
    idle_calls size
    mov %eax, %ebp
    idle_calls number
    movslq %ebp, %rsi
    movslq %eax, %rcx
    mov %r12, %rax
    cqto
    idiv %rsi
    cmp %rdx, %rcx
    jl 8f
7:  imul %rax, %rcx
    add %rcx, %rdx
    add %rdx, %rax
    cmp %rax, %rdx
    jge 2f
    jmp 1f
8:  add $1, %rax
    xor %edx, %edx
    jmp 7b
1:  ud2
  .endm
  .macro idle_ends
    add $0x108, %rsp
    pop %r12
    pop %rbx
    ret
  .endm

  .p2align 4
idle_adds_numbers:
  idle_begins
2: xor %ebp, %ebp
  lock add %rbp, 8(%rbx)
  idle_ends

  .p2align 4
idle_adds_reals:
  idle_begins
2: pxor %xmm0, %xmm0
  mov 8(%rbx), %rax
3: movq %rax, %xmm1
  addsd %xmm0, %xmm1
  movq %xmm1, %rdx
  lock cmpxchg %rdx, 8(%rbx)
  jne 3b
  idle_ends

  .p2align 4
idle_takes_the_most:
  idle_begins
2: movabs $-0x8000000000000000, %rbp
  mov 8(%rbx), %rax
3: cmp %rax, %rbp
  mov %rax, %rdx
  cmovge %rbp, %rdx
  lock cmpxchg %rdx, 8(%rbx)
  jne 3b
  idle_ends

  .p2align 4
idle_reduces_two:                  # the last call is a jump
  idle_begins
2: idle_calls lock
  pxor %xmm0, %xmm0
  addsd 8(%rbx), %xmm0
  movsd %xmm0, 8(%rbx)
  xor %eax, %eax
  add %eax, 16(%rbx)
  add $0x108, %rsp
  pop %r12
  pop %rbx
  jmp *idle_slot_lock(%rip)

  .p2align 4
idle_has_an_array:                 # of the thread's own
  push %rdi
  sub $0x40, %rsp
  mov %rsp, %rdi
  xor %esi, %esi
  mov $0x40, %edx
  idle_calls fills
  mov 8(%rax), %rcx
  add $0x40, %rsp
  pop %rdi
  push %rcx
  idle_begins
2: mov 0x118(%rsp), %rax
  add %rax, 8(%rbx)
  add $0x108, %rsp
  pop %r12
  pop %rbx
  pop %rcx
  ret

  .p2align 4
idle_does_nothing:
  idle_begins
2: idle_ends

  .p2align 4
idle_calls_its_own:
  idle_begins
2: xor %edi, %edi
  call idle_same
  or %rax, 8(%rbx)
  idle_ends
idle_same:
  push %rdi
  pop %rax
  ret

  .p2align 4
idle_counts_threads:
  idle_begins
2: lock incl 8(%rbx)
  idle_ends

  .p2align 4
idle_counts_threads_who_work:
  idle_begins
2: mov %rdx, %rax
  sub %rdx, %rax
  lock add %rax, 8(%rbx)
  idle_ends

  .p2align 4
idle_adds_what_is_there:
  idle_begins
2: mov 16(%rbx), %rax
  lock add %rax, 8(%rbx)
  idle_ends

  .p2align 4
idle_prints:
  idle_begins
2: idle_calls other
  idle_ends

  .p2align 4
idle_never_ends:
  idle_begins
2: jmp 2b

  .p2align 4
idle_has_no_loop:
  ret

  .p2align 4
idle_has_two_counts:
  idle_begins
2: mov $7, %eax
  cqto
  idiv %rsi
  idle_ends
  .p2align 6
  .skip 64, 0x90
  .popsection
  .pushsection .data.rel.ro, "aw"
idle_slot_size: .quad 0x10
idle_slot_number: .quad 0x20
idle_slot_other: .quad 0x30
idle_slot_lock: .quad 0x40
idle_slot_fills: .quad 0x50
  .popsection
)");

Callee callee_of(const void* function) {
  static const std::map<std::uintptr_t, Callee> callees = {{0x10, Callee::kTeamSize},
                                                           {0x20, Callee::kThreadNumber},
                                                           {0x30, Callee::kOther},
                                                           {0x40, Callee::kIteration},
                                                           {0x50, Callee::kFills}};
  return callees.at(reinterpret_cast<std::uintptr_t>(function));
}

using Data = std::array<std::int64_t, 3>;

std::optional<IdleThread> found(void (*function)(), const Data& data) {
  const Data before = data;
  const auto idle = idle_thread_of(reinterpret_cast<const void*>(function), &data, callee_of);
  EXPECT_EQ(data, before) << "what the program has is not to be changed";
  return idle;
}

TEST(IdleThread, ThatAddsNothingIsFoundToChangeNothing) {
  const Data data = {1000, 0x4059'0000'0000'0000, 5};  // 100.0, as a real
  for (const auto function : {idle_adds_numbers, idle_adds_reals, idle_takes_the_most,
                              idle_reduces_two, idle_has_an_array, idle_calls_its_own}) {
    const auto idle = found(function, data);
    ASSERT_TRUE(idle.has_value());
    EXPECT_EQ(idle->iterations, 1000u);
    EXPECT_TRUE(idle->reduces);
  }
}

TEST(IdleThread, TellsHowManyIterationsThereAre) {
  for (const std::int64_t count : {1, 77, 1'000'000, 0x7fff'fffe}) {
    const auto idle = found(idle_does_nothing, {count});
    ASSERT_TRUE(idle.has_value()) << count;
    EXPECT_EQ(idle->iterations, static_cast<std::uint64_t>(count));
    EXPECT_FALSE(idle->reduces);
  }
}

TEST(IdleThread, IsNotKnownWhereItWouldHaveIterations) {
  for (const std::int64_t count : {std::int64_t{0x7fff'ffff}, std::int64_t{1} << 40}) {
    EXPECT_FALSE(found(idle_does_nothing, {count}).has_value()) << count;
  }
  EXPECT_FALSE(found(idle_does_nothing, {0}).has_value()) << "there is no loop to be shared";
  EXPECT_FALSE(found(idle_has_two_counts, {1000}).has_value());
  EXPECT_FALSE(found(idle_has_no_loop, {1000}).has_value());
}

TEST(IdleThread, ThatCountsThreadsIsFoundOut) {
  EXPECT_FALSE(found(idle_counts_threads, {1000}).has_value());
  EXPECT_FALSE(found(idle_adds_what_is_there, {1000, 3, 4}).has_value());
  EXPECT_TRUE(found(idle_adds_what_is_there, {1000, 3, 0}).has_value()) << "it adds 0";
  EXPECT_TRUE(found(idle_counts_threads_who_work, {1000, 3}).has_value());
}

TEST(IdleThread, ThatDoesWhatIsNotKnownIsNone) {
  EXPECT_FALSE(found(idle_prints, {1000}).has_value());
  EXPECT_FALSE(found(idle_never_ends, {1000}).has_value());
  const int here = 0;
  EXPECT_FALSE(idle_thread_of(&here, nullptr, callee_of).has_value());
}

}  // namespace
}  // namespace amasia::omp
