// SPDX-License-Identifier: Apache-2.0
#include "omp/code/reached_code.hpp"

#include <gtest/gtest.h>

#include <map>

namespace amasia::omp {
namespace {

// Functions as gcc and clang write them, shortened. What they call is reached by slots, as other
// objects' functions.
extern "C" void reached_left_alone();
extern "C" void reached_checks_its_stack();
extern "C" void reached_calls_its_own();
extern "C" void reached_calls_itself();
extern "C" void reached_has_a_region();
extern "C" void reached_ends_in_a_call();
extern "C" void reached_used();
extern "C" void reached_used_on_one_path();
extern "C" void reached_used_by_what_it_calls();
extern "C" void reached_used_by_its_region();
extern "C" void reached_asks_for_their_base();
extern "C" void reached_asks_the_kernel();
extern "C" void reached_in_gs();
extern "C" void reached_calls_another_object();
extern "C" void reached_ends_in_another_object();
extern "C" void reached_calls_what_it_is_given();
extern "C" void reached_jumps_by_table();
extern "C" void reached_divides_a_loop();
extern "C" void reached_asks_for_its_number();
extern "C" void reached_calls_who_asks();
extern "C" void reached_waits_for_a_flag();
extern "C" void reached_waits_with_a_pause();
extern "C" void reached_calls_who_waits();
extern "C" void reached_calls_another_who_waits();

asm(R"(
  .pushsection .text
  .macro asks name
    call *reached_slot_\name(%rip)
  .endm

  .p2align 4
reached_left_alone:           # a loop, a barrier, memset, exp, and what does not return
  push %rbx
  mov (%rdi), %rbx
1:
  mov %rbx, %rdi
  asks fills
  asks reals
  sub $1, %rbx
  jne 1b
  asks construct
  test %rax, %rax
  je 2f
  pop %rbx
  ret
2:
  asks ends

  .p2align 4
reached_checks_its_stack:
  sub $0x18, %rsp
  mov %fs:0x28, %rax
  mov %rax, 8(%rsp)
  mov 8(%rsp), %rax
  sub %fs:0x28, %rax
  jne 1f
  add $0x18, %rsp
  ret
1:
  asks ends

  .p2align 4
reached_calls_its_own:
  call reached_left_alone
  ret

  .p2align 4
reached_calls_itself:
  sub $1, %rdi
  je 1f
  call reached_calls_itself
1:
  ret

  .p2align 4
reached_has_a_region:
  lea reached_calls_its_own(%rip), %rdi
  xor %edx, %edx
  asks construct
  ret

  .p2align 4
reached_ends_in_a_call:
  jmp *reached_slot_construct(%rip)

  .p2align 4
reached_used:                 # local-exec
  addl $1, %fs:0xfffffffffffffffc
  ret

  .p2align 4
reached_used_on_one_path:
  test %rdi, %rdi
  jne 1f
  ret
1:
  mov %fs:0, %rax
  incl -8(%rax)
  ret

  .p2align 4
reached_used_by_what_it_calls:
  call reached_used_on_one_path
  ret

  .p2align 4
reached_used_by_its_region:
  lea reached_used(%rip), %rdi
  xor %edx, %edx
  asks construct
  ret

  .p2align 4
reached_asks_for_their_base:
  rdfsbase %rax
  incl -8(%rax)
  ret

  .p2align 4
reached_asks_the_kernel:      # arch_prctl
  mov $158, %eax
  syscall
  ret

  .p2align 4
reached_in_gs:
  mov %gs:8, %rax
  ret

  .p2align 4
reached_calls_another_object: # __tls_get_addr among them
  asks other
  ret

  .p2align 4
reached_ends_in_another_object:
  jmp *reached_slot_other(%rip)

  .p2align 4
reached_calls_what_it_is_given:
  call *%rdi
  ret

  .p2align 4
reached_jumps_by_table:
  jmp *(%rsi,%rdi,8)

  .p2align 4
reached_divides_a_loop:         # 12 bytes up to the second call's end
  asks size
  asks number
  ret

  .p2align 4
reached_asks_for_its_number:
  asks size
  asks number
  asks number
  ret

  .p2align 4
reached_calls_who_asks:
  call reached_asks_for_its_number
  ret

  .p2align 4
reached_waits_for_a_flag:
  lock incl (%rdi)
1:
  mov (%rdi), %eax
  cmp %esi, %eax
  jl 1b
  ret

  .p2align 4
reached_waits_with_a_pause:     # and counts how often
1:
  pause
  add $1, %rax
  cmp %esi, (%rdi)
  jl 1b
  ret

  .p2align 4
reached_calls_who_waits:
  test %rdi, %rdi
  je 1f
  call reached_waits_for_a_flag
1:
  ret

  .p2align 4
reached_calls_another_who_waits:
  asks other
  jmp reached_waits_with_a_pause
  .popsection
  .pushsection .data.rel.ro, "aw"
reached_slot_fills: .quad 0x10
reached_slot_reals: .quad 0x20
reached_slot_construct: .quad 0x30
reached_slot_ends: .quad 0x40
reached_slot_other: .quad 0x50
reached_slot_number: .quad 0x60
reached_slot_size: .quad 0x70
  .popsection
)");

Callee callee_of(const void* function) {
  static const std::map<std::uintptr_t, Callee> callees = {{0x10, Callee::kFills},
                                                           {0x20, Callee::kOfReals},
                                                           {0x30, Callee::kConstruct},
                                                           {0x40, Callee::kEnds},
                                                           {0x50, Callee::kOther},
                                                           {0x60, Callee::kThreadNumber},
                                                           {0x70, Callee::kTeamSize}};
  return callees.at(reinterpret_cast<std::uintptr_t>(function));
}

ReachedCode of(void (*function)(), std::uint32_t extent = 0) {
  return reached_code_of(reinterpret_cast<const void*>(function), extent, callee_of);
}
bool may_use(void (*function)()) { return of(function).uses_thread_locals; }

TEST(ReachedCode, LeavesThreadLocalsAloneWhereAllPathsAreSeenTo) {
  EXPECT_FALSE(may_use(reached_left_alone));
  EXPECT_FALSE(may_use(reached_checks_its_stack));
  EXPECT_FALSE(may_use(reached_calls_its_own));
  EXPECT_FALSE(may_use(reached_calls_itself));
  EXPECT_FALSE(may_use(reached_has_a_region));
  EXPECT_FALSE(may_use(reached_ends_in_a_call));
}

TEST(ReachedCode, UsesThreadLocalsOnAnyPath) {
  EXPECT_TRUE(may_use(reached_used));
  EXPECT_TRUE(may_use(reached_used_on_one_path));
  EXPECT_TRUE(may_use(reached_used_by_what_it_calls));
  EXPECT_TRUE(may_use(reached_used_by_its_region));
  EXPECT_TRUE(may_use(reached_asks_for_their_base));
  EXPECT_TRUE(may_use(reached_asks_the_kernel));
  EXPECT_TRUE(may_use(reached_in_gs));
}

TEST(ReachedCode, MayDoAnythingWhereNotAllPathsAreSeen) {
  EXPECT_TRUE(may_use(reached_calls_another_object));
  EXPECT_TRUE(may_use(reached_ends_in_another_object));
  EXPECT_TRUE(may_use(reached_calls_what_it_is_given));
  EXPECT_TRUE(may_use(reached_jumps_by_table));
  static const int no_code = 0;
  EXPECT_TRUE(reached_code_of(&no_code, 0, callee_of).uses_thread_locals);
  EXPECT_TRUE(of(reached_calls_another_object).asks_for_numbers);
}

TEST(ReachedCode, AsksForNumbersWhereItsLoopDoesNot) {
  constexpr std::uint32_t kOfLoop = 12;
  EXPECT_TRUE(of(reached_calls_its_own).asks_for_numbers) << "it has another construct";
  EXPECT_FALSE(of(reached_checks_its_stack).asks_for_numbers);
  EXPECT_FALSE(of(reached_divides_a_loop, kOfLoop).asks_for_numbers);
  EXPECT_TRUE(of(reached_divides_a_loop).asks_for_numbers);
  EXPECT_TRUE(of(reached_asks_for_its_number, kOfLoop).asks_for_numbers);
  EXPECT_TRUE(of(reached_calls_who_asks, kOfLoop).asks_for_numbers);
}

TEST(ReachedCode, WaitsWhereALoopDoesNothingElse) {
  EXPECT_TRUE(of(reached_waits_for_a_flag).waits);
  EXPECT_TRUE(of(reached_waits_with_a_pause).waits);
  EXPECT_TRUE(of(reached_calls_who_waits).waits);
  EXPECT_FALSE(of(reached_left_alone).waits) << "its loop counts";
  EXPECT_FALSE(of(reached_calls_itself).waits);
  EXPECT_FALSE(of(reached_jumps_by_table).waits) << "it is not seen to";
  EXPECT_TRUE(of(reached_calls_another_who_waits).waits);
}

// As the compiler at hand writes them.
thread_local long variable_of_thread;
[[gnu::noinline]] void adds_to_its_variable() { variable_of_thread += 1; }
long variable_of_all;
[[gnu::noinline]] void adds_to_a_variable() { variable_of_all += 1; }

TEST(ReachedCode, UsesThreadLocalsInWhatThisCompilerWrites) {
  EXPECT_TRUE(may_use(adds_to_its_variable));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_FALSE(may_use(adds_to_a_variable));
#endif
}

}  // namespace
}  // namespace amasia::omp
