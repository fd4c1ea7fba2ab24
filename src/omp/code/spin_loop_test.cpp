// SPDX-License-Identifier: Apache-2.0
#include "omp/code/spin_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

// NAME: a place inside of a loop; its first instruction, its jump and its end have names after it.
#define AMASIA_LOOP(NAME, BEFORE, AFTER)                             \
  asm(".text\n.p2align 4\n"                                          \
      ".globl " #NAME "_begin, " #NAME ", " #NAME "_branch, " #NAME "_next\n" \
      #NAME "_begin:\n" BEFORE "\n" #NAME ":\n" AFTER "\n"           \
      #NAME "_next:\n ret\n")
#define AMASIA_DECLARE(NAME) \
  extern "C" const unsigned char NAME##_begin[], NAME[], NAME##_branch[], NAME##_next[]

// As gfortran has it for: do while (isync(neigh) .eq. 0); !$omp flush; end do
AMASIA_LOOP(spin_fortran, "lock orq $0, (%rsp)", R"(
  movl 4(%rdi, %rcx, 4), %eax
  testl %eax, %eax
spin_fortran_branch:
  je spin_fortran_begin)");
AMASIA_LOOP(spin_pause, "pause", R"(
  cmpb $0, (%rdi)
spin_pause_branch:
  jne spin_pause_begin)");
AMASIA_LOOP(spin_byte, "movzbl (%rdi), %eax", R"(
  mfence
  cmpb %al, %sil
spin_byte_branch:
  ja spin_byte_begin)");
AMASIA_LOOP(spin_exit, "movq (%rdi), %rax", R"(
  cmpq %rsi, %rax
  jg spin_exit_next
spin_exit_branch:
  jmp spin_exit_begin)");
AMASIA_LOOP(spin_double, "movsd (%rdi), %xmm0", R"(
  ucomisd %xmm1, %xmm0
spin_double_branch:
  jp spin_double_begin)");
// As gcc has it without optimisation.
AMASIA_LOOP(spin_plain, "movl -4(%rbp), %eax", R"(
  cltq
  leaq 0(,%rax,4), %rdx
  leaq (%rdi), %rax
  movl (%rdx, %rax), %eax
  cmpl %eax, -8(%rbp)
spin_plain_branch:
  jge spin_plain_begin)");
// And what is no waiting, or may be none.
AMASIA_LOOP(counts, "pause", R"(
  decl %ecx
  cmpl $0, (%rdi)
  je counts_next
counts_branch:
  jmp counts_begin)");
AMASIA_LOOP(follows, "movq (%rdi), %rdi", R"(
  testq %rdi, %rdi
follows_branch:
  jne follows_begin)");
AMASIA_LOOP(stores, "movl $1, (%rsi)", R"(
  cmpl $0, (%rdi)
stores_branch:
  je stores_begin)");
AMASIA_LOOP(takes, "movl $1, %eax", R"(
  xchgl %eax, (%rdi)
  testl %eax, %eax
takes_branch:
  jne takes_begin)");
AMASIA_LOOP(calls, "call takes_begin", R"(
  cmpl $0, (%rdi)
calls_branch:
  je calls_begin)");
AMASIA_LOOP(looks_at_time, "rdtsc", R"(
  cmpq (%rdi), %rax
looks_at_time_branch:
  jb looks_at_time_begin)");
AMASIA_LOOP(reads_nothing, "nop", R"(
  cmpl $0, %eax
reads_nothing_branch:
  je reads_nothing_begin)");
AMASIA_LOOP(sums, "addl (%rdi), %eax", R"(
  cmpl %esi, %eax
sums_branch:
  jl sums_begin)");
AMASIA_LOOP(skips, "cmpl $0, (%rsi)", R"(
  je skips_branch
  cmpl $0, (%rdi)
skips_branch:
  je skips_begin)");
AMASIA_DECLARE(spin_fortran);
AMASIA_DECLARE(spin_pause);
AMASIA_DECLARE(spin_byte);
AMASIA_DECLARE(spin_exit);
AMASIA_DECLARE(spin_double);
AMASIA_DECLARE(spin_plain);
AMASIA_DECLARE(counts);
AMASIA_DECLARE(follows);
AMASIA_DECLARE(stores);
AMASIA_DECLARE(takes);
AMASIA_DECLARE(calls);
AMASIA_DECLARE(looks_at_time);
AMASIA_DECLARE(reads_nothing);
AMASIA_DECLARE(sums);
AMASIA_DECLARE(skips);

namespace amasia::omp {
namespace {

struct Sample {
  const char* name;
  const Byte *begin, *inside, *branch, *next;
};
#define AMASIA_SAMPLE(NAME) \
  Sample { #NAME, NAME##_begin, NAME, NAME##_branch, NAME##_next }

TEST(SpinLoop, IsFoundFromEachOfItsInstructions) {
  for (const Sample& sample :
       {AMASIA_SAMPLE(spin_fortran), AMASIA_SAMPLE(spin_pause), AMASIA_SAMPLE(spin_byte),
        AMASIA_SAMPLE(spin_exit), AMASIA_SAMPLE(spin_double), AMASIA_SAMPLE(spin_plain)}) {
    for (const Byte* const at : {sample.begin, sample.inside, sample.branch}) {
      const auto loop = spin_loop_at(at);
      ASSERT_TRUE(loop.has_value()) << sample.name;
      EXPECT_EQ(loop->begin, sample.begin) << sample.name;
      EXPECT_EQ(loop->branch, sample.branch) << sample.name;
      EXPECT_EQ(loop->next, sample.next) << sample.name;
    }
  }
}

TEST(SpinLoop, IsNoneWhoseRoundsDiffer) {
  for (const Sample& sample :
       {AMASIA_SAMPLE(counts), AMASIA_SAMPLE(follows), AMASIA_SAMPLE(stores), AMASIA_SAMPLE(takes),
        AMASIA_SAMPLE(calls), AMASIA_SAMPLE(looks_at_time), AMASIA_SAMPLE(reads_nothing),
        AMASIA_SAMPLE(sums), AMASIA_SAMPLE(skips)}) {
    for (const Byte* const at : {sample.begin, sample.inside, sample.branch}) {
      EXPECT_FALSE(spin_loop_at(at).has_value()) << sample.name;
    }
  }
  EXPECT_FALSE(spin_loop_at(nullptr).has_value());
}

// What the processor would do after the same comparison.
TEST(SpinLoop, JumpsByTheFlags) {
  const std::vector<std::int32_t> values{-2'000'000'000, -1, 0, 1, 2, 3, 2'000'000'000};
  for (const std::int32_t one : values) {
    for (const std::int32_t other : values) {
      std::uint64_t flags = 0;
      std::array<std::uint8_t, 16> taken{};
      asm volatile(
          "cmpl %[other], %[one]\n pushfq\n popq %[flags]\n"
          "cmpl %[other], %[one]\n"
          "seto 0(%[taken])\n setno 1(%[taken])\n setb 2(%[taken])\n setae 3(%[taken])\n"
          "sete 4(%[taken])\n setne 5(%[taken])\n setbe 6(%[taken])\n seta 7(%[taken])\n"
          "sets 8(%[taken])\n setns 9(%[taken])\n setp 10(%[taken])\n setnp 11(%[taken])\n"
          "setl 12(%[taken])\n setge 13(%[taken])\n setle 14(%[taken])\n setg 15(%[taken])\n"
          : [flags] "=&r"(flags)
          : [one] "r"(one), [other] "r"(other), [taken] "r"(taken.data())
          : "cc", "memory");
      for (std::uint8_t condition = 0; condition < 16; ++condition) {
        EXPECT_EQ(jumps_back({.condition = condition}, flags), taken[condition] != 0)
            << one << " " << other << " " << int{condition};
      }
    }
  }
  EXPECT_TRUE(jumps_back({}, 0));
}

}  // namespace
}  // namespace amasia::omp
