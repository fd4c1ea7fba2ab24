// SPDX-License-Identifier: Apache-2.0
#include "omp/code/reentry.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace amasia::omp {
namespace {

// Functions as clang 14 and 19 write them at several levels of optimisation, shortened, and ones
// that must not be entered again. What they call is reached by slots, as other objects' functions.
extern "C" void reentry_plain();
extern "C" void reentry_reduces();
extern "C" void reentry_without_optimisation();
extern "C" void reentry_with_debug_information();
extern "C" void reentry_checks_its_stack();
extern "C" void reentry_counts_before();
extern "C" void reentry_writes_a_variable_before();
extern "C" void reentry_writes_a_thread_local_before();
extern "C" void reentry_fills_others();
extern "C" void reentry_writes_by_what_it_loaded();
extern "C" void reentry_may_write_others();
extern "C" void reentry_calls_before();
extern "C" void reentry_writes_after();
extern "C" void reentry_calls_after();
extern "C" void reentry_writes_after_reducing();
extern "C" void reentry_may_not_reduce();
extern "C" void reentry_has_two_loops();
extern "C" void reentry_meets();
extern "C" void reentry_shows_threads();
extern "C" void reentry_may_leave_the_loop();
extern "C" void reentry_jumps_by_table();
extern "C" void reentry_has_no_loop();
extern "C" void reentry_asks_the_kernel();
extern "C" void reentry_is_no_code();

asm(R"(
  .pushsection .text
  .macro calls name
    call *reentry_slot_\name(%rip)
  .endm

  .p2align 4
reentry_plain:                  # -O2: nothing where there are no iterations
  push %rbp
  push %rbx
  sub $0x28, %rsp
  mov (%rdx), %r12
  test %r12, %r12
  jle 2f
  movq $0, 0x10(%rsp)
  mov %r12, 0x8(%rsp)
  lea 0x8(%rsp), %r9
  push $1
  push $1
  calls bounds
  add $0x10, %rsp
  mov 0x10(%rsp), %rsi
  jmp 3f
1: calls loop_end
2: add $0x28, %rsp
  pop %rbx
  pop %rbp
  ret
3: mov %rsi, (%rcx,%rsi,8)
  call *%rax
  calls other
  cmp %r12, %rsi
  jne 3b
  jmp 1b

  .p2align 4
reentry_reduces:                # -O2
  push %rbx
  sub $0x30, %rsp
  mov %rcx, %r15
  movq $0, (%rsp)
  calls bounds
1: addsd (%rcx), %xmm0
  calls critical
  dec %rbx
  jne 1b
  calls loop_end
  mov %rsp, %rax
  mov %rax, 0x20(%rsp)
  calls reduces
  cmp $2, %eax
  je 3f
  cmp $1, %eax
  jne 4f
  movsd %xmm0, (%r15)
  calls reduced
  jmp 4f
3: mov (%r15), %rax
  lock cmpxchg %rcx, (%r15)
  jne 3b
4: add $0x30, %rsp
  pop %rbx
  ret

  .p2align 4
reentry_without_optimisation:   # -O0: addresses of variables are kept on the stack
  push %rbp
  mov %rsp, %rbp
  sub $0xc0, %rsp
  mov %rdi, -0x8(%rbp)
  mov -0x18(%rbp), %rax
  mov (%rax), %rax
  cqo
  idiv %rcx
  movl $0, -0x6c(%rbp)
  lea -0x68(%rbp), %rax
  mov %rax, (%rsp)
  calls bounds
  jmp 2f
1: mov %rax, (%rcx)
2: cmp -0x60(%rbp), %rax
  jg 1b
  calls loop_end
  mov %rax, -0x60(%rbp)
  leave
  ret

  .p2align 4
reentry_with_debug_information: # calls another one, and fills its copies of an array
  push %rbp
  mov %rsp, %rbp
  call reentry_local
  pop %rbp
  ret
  .p2align 4
reentry_local:
  sub $0x400, %rsp
  mov %rsp, %rdi
  calls fills
  lea 0x10(%rsp), %rbx
  mov %rax, 8(%rbx)
  calls harmless
  calls bounds
  calls loop_end
  add $0x400, %rsp
  ret

  .p2align 4
reentry_checks_its_stack:
  sub $0x18, %rsp
  mov %fs:0x28, %rax
  mov %rax, 0x8(%rsp)
  calls bounds
  calls loop_end
  mov 0x8(%rsp), %rax
  sub %fs:0x28, %rax
  jne 1f
  add $0x18, %rsp
  ret
1: calls ends

  .p2align 4
reentry_counts_before:
  lock incl (%rcx)
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_writes_a_variable_before:
  movl $1, reentry_variable(%rip)
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_writes_a_thread_local_before:
  movl $1, %fs:-8
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_fills_others:
  mov %rcx, %rdi
  calls fills
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_writes_by_what_it_loaded:
  lea 8(%rsp), %rax
  mov 8(%rsp), %rax
  mov %rcx, (%rax)
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_may_write_others:       # on one of two paths its pointer is the stack's
  mov %rsp, %rax
  test %ecx, %ecx
  je 1f
  mov %rdx, %rax
1: mov %rcx, (%rax)
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_calls_before:
  calls other
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_writes_after:
  calls bounds
  calls loop_end
  incl (%rbx)
  ret
  .p2align 4
reentry_calls_after:            # a destructor, say
  calls bounds
  calls loop_end
  calls other
  ret
  .p2align 4
reentry_writes_after_reducing:
  calls bounds
  calls loop_end
  calls reduces
  cmp $1, %eax
  jne 1f
  movsd %xmm0, (%r15)
  calls reduced
1: incl (%rbx)
  ret
  .p2align 4
reentry_may_not_reduce:
  calls bounds
  calls loop_end
  test %ebx, %ebx
  je 1f
  calls reduces
  calls reduced
1: ret
  .p2align 4
reentry_has_two_loops:
  calls bounds
  calls loop_end
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_meets:
  calls bounds
  calls loop_end
  calls construct
  ret
  .p2align 4
reentry_shows_threads:
  calls bounds
  calls construct
  calls loop_end
  ret
  .p2align 4
reentry_may_leave_the_loop:
  calls bounds
  test %ebx, %ebx
  je 1f
  calls loop_end
1: ret
  .p2align 4
reentry_jumps_by_table:
  calls bounds
  jmp *(%rax,%rcx,8)
  .p2align 4
reentry_has_no_loop:
  ret
  .p2align 4
reentry_asks_the_kernel:
  syscall
  calls bounds
  calls loop_end
  ret
  .p2align 4
reentry_is_no_code:
  .byte 0x06, 0x06, 0x06
  .p2align 6
  .skip 64, 0x90
  .popsection
  .pushsection .data.rel.ro, "aw"
reentry_slot_bounds: .quad 0x10
reentry_slot_loop_end: .quad 0x20
reentry_slot_reduces: .quad 0x30
reentry_slot_reduced: .quad 0x40
reentry_slot_other: .quad 0x50
reentry_slot_critical: .quad 0x60
reentry_slot_fills: .quad 0x70
reentry_slot_harmless: .quad 0x80
reentry_slot_ends: .quad 0x90
reentry_slot_construct: .quad 0xa0
  .popsection
  .pushsection .data, "aw"
reentry_variable: .long 0
  .popsection
)");

Callee callee_of(const void* function) {
  static const std::map<std::uintptr_t, Callee> callees = {
      {0x10, Callee::kBounds},    {0x20, Callee::kLoopEnd}, {0x30, Callee::kReduces},
      {0x40, Callee::kReduced},   {0x50, Callee::kOther},   {0x60, Callee::kIteration},
      {0x70, Callee::kFills},     {0x80, Callee::kHarmless}, {0x90, Callee::kEnds},
      {0xa0, Callee::kConstruct}};
  return callees.at(reinterpret_cast<std::uintptr_t>(function));
}

Reentry of(void (*function)()) {
  return reentry_of(reinterpret_cast<const void*>(function), callee_of);
}

TEST(Reentry, OfAFunctionThatIsOnlyALoopIsShown) {
  EXPECT_EQ(of(reentry_plain), Reentry::kPlain);
  EXPECT_EQ(of(reentry_without_optimisation), Reentry::kPlain);
  EXPECT_EQ(of(reentry_with_debug_information), Reentry::kPlain);
  EXPECT_EQ(of(reentry_checks_its_stack), Reentry::kPlain);
}

TEST(Reentry, OfALoopThatReducesIsShown) {
  EXPECT_EQ(of(reentry_reduces), Reentry::kReduces);
}

TEST(Reentry, IsDeniedToWhatChangesAnythingBeforeItsLoop) {
  EXPECT_EQ(of(reentry_counts_before), Reentry::kNever);
  EXPECT_EQ(of(reentry_writes_a_variable_before), Reentry::kNever);
  EXPECT_EQ(of(reentry_writes_a_thread_local_before), Reentry::kNever);
  EXPECT_EQ(of(reentry_fills_others), Reentry::kNever);
  EXPECT_EQ(of(reentry_writes_by_what_it_loaded), Reentry::kNever);
  EXPECT_EQ(of(reentry_may_write_others), Reentry::kNever);
  EXPECT_EQ(of(reentry_calls_before), Reentry::kNever);
  EXPECT_EQ(of(reentry_asks_the_kernel), Reentry::kNever);
}

TEST(Reentry, IsDeniedToWhatChangesAnythingAfterItsLoop) {
  EXPECT_EQ(of(reentry_writes_after), Reentry::kNever);
  EXPECT_EQ(of(reentry_calls_after), Reentry::kNever);
  EXPECT_EQ(of(reentry_writes_after_reducing), Reentry::kNever);
  EXPECT_EQ(of(reentry_may_not_reduce), Reentry::kNever);
}

TEST(Reentry, IsDeniedToWhatHasOtherConstructs) {
  EXPECT_EQ(of(reentry_has_two_loops), Reentry::kNever);
  EXPECT_EQ(of(reentry_meets), Reentry::kNever);
  EXPECT_EQ(of(reentry_shows_threads), Reentry::kNever);
}

TEST(Reentry, IsDeniedWhereNotAllPathsAreSeen) {
  EXPECT_EQ(of(reentry_may_leave_the_loop), Reentry::kNever);
  EXPECT_EQ(of(reentry_jumps_by_table), Reentry::kNever);
  EXPECT_EQ(of(reentry_has_no_loop), Reentry::kNever);
  EXPECT_EQ(of(reentry_is_no_code), Reentry::kNever);
  const int here = 0;
  EXPECT_EQ(reentry_of(&here, callee_of), Reentry::kNever);
}

}  // namespace
}  // namespace amasia::omp
