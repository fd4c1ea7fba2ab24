// SPDX-License-Identifier: Apache-2.0
#include "omp/code/stepped_thread_fixture.hpp"

namespace amasia::omp {
namespace {

asm(STEPPED_SEQUENCES_BEGIN R"(
  # Sums
  one all, add %rcx, %rax
  one all, add %ecx, %eax
  one all, add %cx, %ax
  one all, add %cl, %ah
  one all, add $-3, %rdx
  one all, add $0x7fffffff, %edx
  one all, add $0x80, %dl
  one all, addl $5, 8(%r14)
  begin all
  mov $3, %r8d
  addq $-1, -8(%r14,%r8,8)
  end
  one all, add (%r15), %rbx
  one all, sub %rcx, %rax
  one all, sub %r9d, %r10d
  one all, sub %si, %di
  one all, sub %dh, %bl
  one all, sub %rax, %rax
  one all, subq $0x12345678, (%r14)
  one all, cmp %rcx, %rax
  one all, cmp $0x7f, %al
  one all, cmpw $-2, 2(%r15)
  one all, cmp %eax, (%r15)
  one all, neg %rax
  one all, negb 3(%r14)
  one all, neg %ecx
  begin all
  add %rcx, %rax
  adc %rdx, %rbx
  adc $7, %r9d
  end
  begin all
  sub %rcx, %rax
  sbb %rdx, %rbx
  sbb %r10w, %r9w
  sbb %r11d, %r11d
  end
  begin all
  cmp %rcx, %rax
  inc %rdx
  decl (%r14)
  inc %r8b
  dec %si
  end
  begin all
  add %rcx, %rax
  mov %rdx, %rbx
  lea 5(%rcx,%rdx,4), %r9
  lea -1(%rdx), %r10d
  lea (,%rdx,8), %r11w
  not %rcx
  notw (%r14)
  not %r12b
  end

  # Bits
  one all, and %rcx, %rax
  one all, and $0xf0f0, %ecx
  one all, andb $0x81, (%r14)
  one all, or %cx, %dx
  one all, or $-16, %rdi
  one all, xor %ah, %bh
  one all, xor %rsi, (%r14)
  one all, xor %edi, %edi
  one all, test %rcx, %rdx
  one all, test $0x80, %al
  one c, bt $5, %rax
  one c, bt %ecx, %edx
  one c, bts $63, %rax
  one c, btr %rcx, %rdx
  one c, btcl $7, (%r14)
  one z|s|c|o|avx, andn %rax, %rcx, %rdx

  # Shifts
  one all, shl %rax
  one all, shl $1, %ecx
  one c|p|z|s, shl $7, %dx
  one c|p|z|s, shl $32, %rbx
  one 0, shl %cl, %rax
  one 0, shl %cl, %eax
  one 0, shl %cl, %dl
  one 0, shlw %cl, (%r14)
  one all, shr %bl
  one c|p|z|s, shr $31, %edi
  one 0, shr %cl, %rdx
  one 0, shr %cl, %edx
  one 0, shr %cl, %dx
  one all, sar %rax
  one c|p|z|s, sar $3, %al
  one 0, sar %cl, %r9
  one 0, sar %cl, %r9d
  one 0, sar %cl, %r9w
  one 0, sar %cl, %r9b
  one c, rol $8, %cx
  one c, ror $5, %rax
  one c|o, ror %edx
  one 0, rol %cl, %r10b
  one avx, shlx %rcx, %rax, %rdx
  one avx, shrx %ecx, %eax, %edx
  one avx, sarx %ecx, (%r15), %edx
  one avx, rorx $13, %rax, %rbx

  # Products and quotients
  one c|o, imul %rcx, %rax
  one c|o, imul %ecx, %edx
  one c|o, imul %cx, %bx
  one c|o, imul $-7, %rcx, %rax
  one c|o, imul $100000, (%r15), %r8d
  one c|o, imul %rcx
  one c|o, imul %ebx
  one c|o, imul %bx
  one c|o, imul %bl
  one c|o, mul %rcx
  one c|o, mull (%r15)
  one c|o, mul %cx
  one c|o, mul %ch
  begin
  xor %edx, %edx
  or $1, %rcx
  div %rcx
  end
  begin
  xor %edx, %edx
  or $2, %ecx
  div %ecx
  end
  begin may_fail
  cqo
  idiv %rcx
  end
  begin may_fail
  cltd
  idivl (%r15)
  end
  begin may_fail
  cwtd
  idiv %bx
  end
  one may_fail, idiv %bl
  one may_fail, div %bh
  one may_fail, div %rbx
  one may_fail, idiv %rbx

  # Moves
  begin
  mov $-5, %rax
  movabs $0x123456789abcdef0, %rcx
  mov %ecx, %edx
  mov %cl, %bh
  mov %ch, %dl
  mov %si, 6(%r14)
  movl $-9, 16(%r14)
  movq $-9, 24(%r14)
  movb $200, 33(%r14)
  mov 6(%r14), %r9w
  mov 16(%r14), %r10b
  end
  begin
  movzbl %cl, %eax
  movzbw %ch, %dx
  movzwl (%r15), %ebx
  movzwq %cx, %rsi
  movsbl %cl, %edi
  movsbw %bh, %di
  movswq 3(%r15), %r9
  movslq %ecx, %r10
  movslq (%r15), %r11
  movsbq %r12b, %r13
  end
  begin
  cbtw
  mov %rax, %rbx
  cwtl
  mov %rax, %rcx
  cltq
  cltd
  mov %rdx, %rsi
  cqto
  mov %rdx, %rdi
  cwtd
  end
  begin
  push %rax
  push $-3
  pushq (%r15)
  push %rbp
  mov %rsp, %rbp
  sub $0x40, %rsp
  mov %rcx, -0x10(%rbp)
  mov -0xc(%rbp), %edx
  and $-32, %rsp
  movl $3, (%rsp)
  leave
  pop %rdi
  pop %rsi
  pop %rbx
  end
  begin
  xchg %rax, %rcx
  xchg %dl, %dh
  xchg %ebx, (%r14)
  xchg %esi, %esi
  lock xadd %rdi, 8(%r14)
  xadd %r8d, %r9d
  xadd %r10, %r10
  end
  begin all
  lock cmpxchg %rcx, (%r14)
  end
  begin all
  mov (%r14), %rax
  lock cmpxchg %rcx, (%r14)
  end
  begin all
  mov 4(%r14), %eax
  lock cmpxchg %edx, 4(%r14)
  end
  begin all
  lock cmpxchg %bl, (%r14)
  end
  begin all
  lock addl $5, (%r14)
  lock subq $5, (%r14)
  lock orl $0, (%rsp)
  lock incl (%r14)
  lock xor %ecx, 4(%r14)
  end
  begin
  mov %r14, %rdi
  mov %r15, %rsi
  mov $20, %ecx
  rep movsb
  mov $3, %ecx
  rep movsq
  movsl
  mov $5, %ecx
  rep stosl
  xor %ecx, %ecx
  rep stosq
  stosb
  end
  begin
  endbr64
  nopw 0x0(%rax,%rax,1)
  pause
  mfence
  prefetcht0 (%r15)
  jmp 1f
  ud2
1:end

  # Conditions
  begin all
  cmp %rcx, %rax
  seto %dl
  setno %dh
  setc %bl
  setnc %bh
  setz (%r14)
  setnz 1(%r14)
  setbe 2(%r14)
  seta 3(%r14)
  sets %sil
  setns %dil
  setp %r8b
  setnp %r9b
  setl %r10b
  setge %r11b
  setle %r12b
  setg %r13b
  end
  begin all
  sub %ecx, %eax
  cmovo %rcx, %rdx
  cmovb %ecx, %ebx
  cmovz (%r15), %esi
  cmovbe (%r15), %rdi
  cmovs %ax, %r8w
  cmovp %eax, %r9d
  cmovl %rax, %r10
  cmovg %eax, %r11d
  end
  .macro counted_jump condition
  inc %edx
  cmp %rcx, %rax
  j\condition 1f
  add %edx, %ebx
1:
  .endm
  begin
  .irp condition, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
  counted_jump \condition
  .endr
  end
  begin z
  mov $9, %ecx
1:add %rcx, %rax
  dec %ecx
  jnz 1b
  end
)" STEPPED_SEQUENCES_END);

class SteppedIntegers : public SteppedSequences {};

TEST_F(SteppedIntegers, DoWhatTheProcessorDoes) { compare_all(); }

}  // namespace
}  // namespace amasia::omp
