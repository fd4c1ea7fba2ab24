// SPDX-License-Identifier: Apache-2.0
#include "omp/code/thread_pointer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

// What compilers make of thread-local variables, and what looks like it.
extern "C" const amasia::omp::Byte thread_pointer_cases[];
asm(R"(
  .pushsection .rodata
  .macro code_case text:vararg
    .byte 2f - 1f
    1: \text
    2:
  .endm
thread_pointer_cases:
  code_case movsd %xmm0, %fs:-0x408(,%rax,8)
  code_case movl %fs:-4, %eax
  code_case movaps %xmm1, %fs:-64
  code_case movq %fs:0x28, %rax
  code_case movl %fs:(%rax), %edx
  code_case andl $0, %eax
  code_case movl $0, 0x0
  code_case rep stosq
  code_case addl $0x64, %esp
  .byte 0
  code_case movq %fs:0, %rax
  code_case movq %fs:0, %r13
  code_case addq %fs:0, %rdx
  code_case subq %fs:0, %r8
  code_case movabsq %fs:0, %rax
  code_case imulq %fs:0, %rax
  code_case movdqu %fs:0, %xmm9
  code_case rdfsbase %rax
  code_case rdfsbase %r9
  .byte 0
  .purgem code_case
  .popsection
)");

namespace amasia::omp {
namespace {

std::vector<std::span<const Byte>> cases_at(const Byte*& at) {
  std::vector<std::span<const Byte>> cases;
  for (; *at != 0; at += 1 + *at) cases.emplace_back(at + 1, *at);
  ++at;
  return cases;
}

TEST(ThreadPointer, IsFoundWhereItIsRead) {
  const Byte* at = thread_pointer_cases;
  const auto without = cases_at(at);
  const auto with = cases_at(at);
  ASSERT_EQ(without.size(), 9U);
  ASSERT_EQ(with.size(), 9U);
  for (std::size_t i = 0; i < without.size(); ++i) {
    EXPECT_FALSE(may_read_thread_pointer(without[i])) << i;
  }
  for (std::size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(may_read_thread_pointer(with[i])) << i;
}

TEST(ThreadPointer, IsFoundAmongOtherInstructions) {
  const Byte* at = thread_pointer_cases;
  const auto without = cases_at(at);
  const auto with = cases_at(at);
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<Byte> code;
    const auto append = [&code](std::span<const Byte> one) {
      code.insert(code.end(), one.begin(), one.end());
    };
    for (unsigned i = random() % 20; i > 0; --i) append(without[random() % without.size()]);
    append(with[random() % with.size()]);
    for (unsigned i = random() % 20; i > 0; --i) append(without[random() % without.size()]);
    EXPECT_TRUE(may_read_thread_pointer(code));
  }
}

TEST(ThreadPointer, NothingIsReadBeyondTheCode) {
  const std::vector<Byte> whole = {0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0};
  EXPECT_TRUE(may_read_thread_pointer(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<Byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(may_read_thread_pointer(part)) << size;
  }
}

}  // namespace
}  // namespace amasia::omp
