// SPDX-License-Identifier: Apache-2.0
#include "omp/code/outlined_code.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

// As the compilers write them; the functions called only have to be somewhere.
extern "C" void code_number();
extern "C" void code_barrier();
extern "C" void code_gcc_copies();
extern "C" void code_gcc_copies_by_table();
extern "C" void code_gcc_uses_number();
extern "C" void code_gcc_ends_before();
extern "C" void code_gcc_precedes();
extern "C" void code_clang_copies();
extern "C" void code_clang_calls_it();
extern "C" void code_clang_meets();

asm(R"(
  .pushsection .text
  .p2align 4
code_number: ud2
  .p2align 4
code_barrier: ud2
  .p2align 4
code_gcc_precedes:
  mov (%rdi), %rax
  ret
code_gcc_copies:
  push %rbp
  mov %rdi, %rbp
  call code_number
  mov %eax, %ebx
  test %eax, %eax
  je 1f
  mov 32(%rbp), %rax
  mov %rdx, %fs:-16
1: call code_barrier
  pop %rbp
  ret
  .p2align 4
code_gcc_copies_by_table:
  call *code_number_slot(%rip)
  test %eax, %eax
  je 1f
  nop
1: call code_barrier_stub
  ret
  .p2align 4
code_barrier_stub:
  endbr64
  jmp *code_barrier_slot(%rip)
  .p2align 4
code_gcc_uses_number:
  call code_number
  lea 1(%rax), %edx
  add %edx, (%rdi)
  mov 8(%rdi), %rax
  mov 16(%rdi), %rcx
  mov %rax, 24(%rdi)
  call code_barrier
  ret
  .p2align 4
code_gcc_ends_before:
  call code_number
  test %eax, %eax
  ret
  nop
  .p2align 4
  call code_barrier
  ret
  .p2align 4
code_clang_copies:
  mov %fs:0, %rax
  lea -8(%rax), %rax
  cmp %rdx, %rax
  je 1f
  mov (%rdx), %ecx
1: call code_barrier
  ret
  .p2align 4
code_clang_calls_it:
  call code_clang_copies
  ret
  .p2align 4
code_clang_meets:
  mov %fs:0x28, %rax
  call code_barrier
  ret
  nop
  .p2align 6
  .skip 64, 0x90
  .popsection
  .pushsection .data.rel.ro, "aw"
code_number_slot: .quad code_number
code_barrier_slot: .quad code_barrier
  .popsection
)");

const void* at(void (*function)()) { return reinterpret_cast<const void*>(function); }
bool by_gcc(void (*function)()) {
  return gcc_copies_in(at(function), at(code_number), at(code_barrier));
}
bool by_clang(void (*function)()) { return clang_copies_in(at(function), at(code_barrier)); }

TEST(OutlinedCode, OfGccCopiesInWhereItComparesTheNumberBeforeABarrier) {
  EXPECT_TRUE(by_gcc(code_gcc_copies));
  EXPECT_TRUE(by_gcc(code_gcc_copies_by_table));
  EXPECT_FALSE(by_gcc(code_gcc_uses_number));
  EXPECT_FALSE(by_gcc(code_gcc_ends_before));
  EXPECT_FALSE(by_gcc(code_gcc_precedes));
  EXPECT_FALSE(by_gcc(code_clang_copies));
  EXPECT_FALSE(gcc_copies_in(at(code_gcc_copies), nullptr, at(code_barrier)));
}

TEST(OutlinedCode, OfClangCopiesInWhereItFindsAVariableBeforeABarrier) {
  EXPECT_TRUE(by_clang(code_clang_copies));
  EXPECT_TRUE(by_clang(code_clang_calls_it));
  EXPECT_FALSE(by_clang(code_clang_meets));
  EXPECT_FALSE(by_clang(code_number));
}

TEST(OutlinedCode, UsesTheWordsWhoseOffsetsItHas) {
  for (const std::size_t used : {0u, 8u, 16u, 24u, 32u}) {
    EXPECT_TRUE(may_use_word(at(code_gcc_uses_number), used)) << used;
  }
  EXPECT_FALSE(may_use_word(at(code_gcc_uses_number), 48));
  EXPECT_FALSE(may_use_word(at(code_gcc_uses_number), 400));
}

TEST(OutlinedCode, ThatIsNotInAnyObjectShowsNothing) {
  const int here = 0;
  EXPECT_FALSE(clang_copies_in(&here, at(code_barrier)));
}

}  // namespace
}  // namespace amasia::omp
