// SPDX-License-Identifier: Apache-2.0
#include "omp/code/numbered_loop.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace amasia::omp {
namespace {

// Functions as gcc 12 writes them at several levels of optimisation, shortened, and ones that make
// something else of their thread's number or the team's size.
extern "C" void numbered_reduces();
extern "C" void numbered_of_64_bits();
extern "C" void numbered_without_optimisation();
extern "C" void numbered_unsigned();
extern "C" void numbered_compares_the_other_way();
extern "C" void numbered_calls_in_iterations();
extern "C" void numbered_ends_in_another_function();
extern "C" void numbered_stores_its_number();
extern "C" void numbered_keeps_its_number();
extern "C" void numbered_indexes_by_its_number();
extern "C" void numbered_is_for_the_first();
extern "C" void numbered_tests_its_number();
extern "C" void numbered_shows_its_number();
extern "C" void numbered_passes_its_number_on();
extern "C" void numbered_uses_the_size();
extern "C" void numbered_drops_the_rest();
extern "C" void numbered_forgets_one_more();
extern "C" void numbered_mixes_paths();
extern "C" void numbered_has_two_loops();
extern "C" void numbered_meets();
extern "C" void numbered_jumps_by_table();
extern "C" void numbered_has_no_loop();
extern "C" void numbered_does_not_divide();
extern "C" void numbered_is_no_code();

asm(R"(
  .pushsection .text
  .macro numbered_calls name
    call *numbered_slot_\name(%rip)
  .endm
  .macro numbered_asks            # the number in ecx, the share in eax, the rest in edx
    numbered_calls size
    mov %eax, %ebx
    numbered_calls number
    mov %eax, %ecx
    mov 8(%rbp), %eax
    cltd
    idiv %ebx
  .endm
  .macro numbered_begins          # the first iteration in edx
    cmp %edx, %ecx
    jl 8f
7:  imul %eax, %ecx
    add %ecx, %edx
    add %edx, %eax
    jmp 9f
8:  add $1, %eax
    xor %edx, %edx
    jmp 7b
9:
  .endm

  .p2align 4
numbered_reduces:                 # -O2
  push %rbp
  push %rbx
  mov %rdi, %rbx
  sub $8, %rsp
  numbered_calls size
  mov %eax, %ebp
  numbered_calls number
  mov %eax, %ecx
  mov 8(%rbx), %eax
  cltd
  idiv %ebp
  cmp %edx, %ecx
  jl 3f
1: imul %eax, %ecx
  pxor %xmm0, %xmm0
  add %ecx, %edx
  lea (%rax,%rdx), %ecx
  cmp %ecx, %edx
  jge 2f
  movslq %edx, %rdx
  addsd (%rsi,%rdx,8), %xmm0
2: mov (%rbx), %rax
  movq %rax, %xmm1
  addsd %xmm0, %xmm1
  movq %xmm1, %rdx
  lock cmpxchg %rdx, (%rbx)
  jne 2b
  add $8, %rsp
  pop %rbx
  pop %rbp
  ret
3: add $1, %eax
  xor %edx, %edx
  jmp 1b

  .p2align 4
numbered_of_64_bits:              # -O2
  push %rbx
  numbered_calls size
  mov %eax, %ebx
  numbered_calls number
  nopl 0(%rax,%rax)
  movslq %ebx, %rsi
  movslq %eax, %rcx
  mov 8(%rbp), %rax
  cqto
  idiv %rsi
  cmp %rdx, %rcx
  jl 2f
1: imul %rax, %rcx
  lea (%rcx,%rdx), %rbx
  add %rbx, %rax
  movsd (%rdx,%rbx,8), %xmm0
  pop %rbx
  ret
2: lea 1(%rax), %rax
  xor %edx, %edx
  jmp 1b

  .p2align 4
numbered_without_optimisation:    # -O0 divides twice
  push %rbp
  mov %rsp, %rbp
  push %r12
  push %rbx
  mov %rdi, -0x38(%rbp)
  mov -0x28(%rbp), %rbx
  numbered_calls size
  movslq %eax, %r12
  numbered_calls number
  movslq %eax, %rsi
  mov %rbx, %rax
  cqto
  idiv %r12
  mov %rax, %rcx
  mov %rbx, %rax
  cqto
  idiv %r12
  mov %rdx, %rax
  cmp %rax, %rsi
  jl 2f
1: imul %rcx, %rsi
  mov %rsi, %rdx
  add %rdx, %rax
  lea (%rax,%rcx), %rdx
  cmp %rdx, %rax
  jge 3f
  mov %rax, -0x18(%rbp)
  jmp 3f
2: mov $0, %eax
  add $1, %rcx
  jmp 1b
3: leave
  ret

  .p2align 4
numbered_unsigned:
  push %rbx
  numbered_calls size
  mov %eax, %r12d
  numbered_calls number
  xor %edx, %edx
  mov %eax, %edi
  mov 4(%rbp), %eax
  div %r12d
  cmp %edx, %edi
  jb 2f
1: mov %eax, %ecx
  imul %edi, %ecx
  add %ecx, %edx
  add %edx, %eax
  pop %rbx
  ret
2: inc %eax
  xor %edx, %edx
  jmp 1b

  .p2align 4
numbered_compares_the_other_way:
  numbered_asks
  cmp %ecx, %edx
  jle 1f
  add $1, %eax
  imul %eax, %ecx
  add %ecx, %eax
  ret
1: imul %ecx, %eax
  add %eax, %edx
  ret

  .p2align 4
numbered_calls_in_iterations:     # what the formula leaves over in rsi and rcx is no argument
  numbered_calls size
  mov %eax, %ebx
  numbered_calls number
  movslq %ebx, %rsi
  movslq %eax, %rcx
  mov 8(%rbp), %rax
  cqto
  idiv %rsi
  cmp %rdx, %rcx
  jl 3f
1: imul %rax, %rcx
  add %rcx, %rdx
  mov %rdx, %rbx
2: numbered_calls of_reals
  mov %rbx, %rdi
  call numbered_of_one_argument
  numbered_calls lock
  dec %rbx
  jne 2b
  ret
3: add $1, %rax
  xor %edx, %edx
  jmp 1b
  .p2align 4
numbered_of_one_argument:
  xor %esi, %esi
  cmp %rsi, %rdi
  je 1f
  lea 1(%rdi), %rsi
1: mov %rsi, %rax
  ret
  .p2align 4
numbered_of_two_arguments:
  test %rdi, %rdi
  je 1f
  xor %esi, %esi
1: mov %rsi, %rax
  ret

  .p2align 4
numbered_ends_in_another_function:
  numbered_asks
  numbered_begins
  jmp *numbered_slot_lock(%rip)

  .p2align 4
numbered_stores_its_number:
  numbered_asks
  mov %ecx, 8(%rsp)
  numbered_begins
  ret
  .p2align 4
numbered_keeps_its_number:        # and the compiler saves it elsewhere
  numbered_asks
  mov %ecx, %r12d
  numbered_begins
  push %r12
  pop %r12
  ret
  .p2align 4
numbered_indexes_by_its_number:
  numbered_asks
  movslq %ecx, %r12
  numbered_begins
  movsd (%rbp,%r12,8), %xmm0
  ret
  .p2align 4
numbered_is_for_the_first:
  numbered_asks
  mov %ecx, %r12d
  numbered_begins
  test %r12d, %r12d
  jne 1f
  incl (%rbp)
1: ret
  .p2align 4
numbered_tests_its_number:        # with what is not the rest
  numbered_asks
  cmp %eax, %ecx
  jl 1f
  incl (%rbp)
1: numbered_begins
  ret
  .p2align 4
numbered_shows_its_number:
  numbered_asks
  mov %ecx, %r12d
  numbered_begins
  mov %r12d, %edx
  numbered_calls other
  ret
  .p2align 4
numbered_passes_its_number_on:
  numbered_asks
  mov %ecx, %esi
  numbered_begins
  call numbered_of_two_arguments
  ret
  .p2align 4
numbered_uses_the_size:
  numbered_asks
  numbered_begins
  cvtsi2sd %ebx, %xmm0
  ret
  .p2align 4
numbered_drops_the_rest:          # right for some sizes only
  numbered_calls size
  mov %eax, %ebx
  numbered_calls number
  mov %eax, %ecx
  mov 8(%rbp), %eax
  cltd
  idiv %ebx
  imul %eax, %ecx
  add %ecx, %eax
  ret
  .p2align 4
numbered_forgets_one_more:
  numbered_asks
  cmp %edx, %ecx
  jl 2f
1: imul %eax, %ecx
  add %ecx, %edx
  ret
2: xor %edx, %edx
  jmp 1b
  .p2align 4
numbered_mixes_paths:             # what is held on one path only is not held for certain
  numbered_asks
  cmp $3, %esi
  je 1f
  mov $7, %ecx
1: numbered_begins
  ret
  .p2align 4
numbered_has_two_loops:
  numbered_asks
  numbered_begins
  numbered_asks
  numbered_begins
  ret
  .p2align 4
numbered_meets:
  numbered_asks
  numbered_begins
  numbered_calls construct
  ret
  .p2align 4
numbered_jumps_by_table:
  numbered_asks
  numbered_begins
  jmp *(%rax,%rdx,8)
  .p2align 4
numbered_has_no_loop:
  ret
  .p2align 4
numbered_does_not_divide:
  numbered_calls size
  numbered_calls number
  ret
  .p2align 4
numbered_is_no_code:
  .byte 0x06, 0x06, 0x06
  .p2align 6
  .skip 64, 0x90
  .popsection
  .pushsection .data.rel.ro, "aw"
numbered_slot_size: .quad 0x10
numbered_slot_number: .quad 0x20
numbered_slot_other: .quad 0x30
numbered_slot_of_reals: .quad 0x40
numbered_slot_lock: .quad 0x50
numbered_slot_construct: .quad 0x60
  .popsection
)");

Callee callee_of(const void* function) {
  static const std::map<std::uintptr_t, Callee> callees = {
      {0x10, Callee::kTeamSize}, {0x20, Callee::kThreadNumber}, {0x30, Callee::kOther},
      {0x40, Callee::kOfReals},  {0x50, Callee::kIteration},    {0x60, Callee::kConstruct}};
  return callees.at(reinterpret_cast<std::uintptr_t>(function));
}

bool is_shown(void (*function)()) {
  return numbered_loop_of(reinterpret_cast<const void*>(function), callee_of).has_value();
}

TEST(NumberedLoop, IsShownOfWhatGccWrites) {
  EXPECT_TRUE(is_shown(numbered_reduces));
  EXPECT_TRUE(is_shown(numbered_of_64_bits));
  EXPECT_TRUE(is_shown(numbered_without_optimisation));
  EXPECT_TRUE(is_shown(numbered_unsigned));
  EXPECT_TRUE(is_shown(numbered_compares_the_other_way));
  EXPECT_TRUE(is_shown(numbered_calls_in_iterations));
  EXPECT_TRUE(is_shown(numbered_ends_in_another_function));
}

TEST(NumberedLoop, KnowsTheCallsThatAreItsOwn) {
  const auto loop =
      numbered_loop_of(reinterpret_cast<const void*>(numbered_reduces), callee_of);
  ASSERT_TRUE(loop.has_value());
  // Two pushes, a move, a subtraction, a call of six bytes, a move, and the last call.
  EXPECT_EQ(loop->extent, 1u + 1 + 3 + 4 + 6 + 2 + 6);
}

TEST(NumberedLoop, IsDeniedToWhatMakesSomethingElseOfItsNumber) {
  EXPECT_FALSE(is_shown(numbered_stores_its_number));
  EXPECT_FALSE(is_shown(numbered_keeps_its_number));
  EXPECT_FALSE(is_shown(numbered_indexes_by_its_number));
  EXPECT_FALSE(is_shown(numbered_is_for_the_first));
  EXPECT_FALSE(is_shown(numbered_tests_its_number));
  EXPECT_FALSE(is_shown(numbered_shows_its_number));
  EXPECT_FALSE(is_shown(numbered_passes_its_number_on));
  EXPECT_FALSE(is_shown(numbered_uses_the_size));
}

TEST(NumberedLoop, IsDeniedToSharesOfOtherKinds) {
  EXPECT_FALSE(is_shown(numbered_drops_the_rest));
  EXPECT_FALSE(is_shown(numbered_forgets_one_more));
  EXPECT_FALSE(is_shown(numbered_mixes_paths));
  EXPECT_FALSE(is_shown(numbered_does_not_divide));
}

TEST(NumberedLoop, IsDeniedToWhatHasOtherConstructs) {
  EXPECT_FALSE(is_shown(numbered_has_two_loops));
  EXPECT_FALSE(is_shown(numbered_meets));
}

TEST(NumberedLoop, IsDeniedWhereNotAllPathsAreSeen) {
  EXPECT_FALSE(is_shown(numbered_jumps_by_table));
  EXPECT_FALSE(is_shown(numbered_has_no_loop));
  EXPECT_FALSE(is_shown(numbered_is_no_code));
  const int here = 0;
  EXPECT_FALSE(numbered_loop_of(&here, callee_of).has_value());
}

}  // namespace
}  // namespace amasia::omp
