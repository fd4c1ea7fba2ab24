// SPDX-License-Identifier: Apache-2.0
// void amasia_call_outlined(void* function, int* gtid, int* bound_id, int64_t count, void** words,
//                           EntryFrame** entry)
// calls function(gtid, bound_id, words[0], …): a call with any number of arguments cannot be
// written in C++. The first two and four words go in registers, the rest on the stack.
#if !defined(__x86_64__)
#error "call_outlined.S has no version for this architecture yet"
#endif

        .text
        .globl  amasia_call_outlined
        .hidden amasia_call_outlined
        .type   amasia_call_outlined, @function
        .p2align 4
amasia_call_outlined:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        testq   %r9, %r9
        jz      .Lnot_noted
        movq    %rbp, (%r9)             // as thread_state.hpp has it
.Lnot_noted:
        movq    %rdi, %r11              // function
        movq    %r8, %r10               // words
        movq    %rcx, %rax              // count
        movq    %rsi, %rdi              // gtid
        movq    %rdx, %rsi              // bound_id
        cmpq    $4, %rax
        jbe     .Lregisters
        // (count - 4) words, rounded up to an even number: the stack stays aligned to 16 bytes.
        leaq    -3(%rax), %rcx
        andq    $-2, %rcx
        shlq    $3, %rcx
        subq    %rcx, %rsp
        leaq    -4(%rax), %rcx          // index of the last one on the stack, plus 1
.Lpush:
        movq    24(%r10,%rcx,8), %rdx   // words[4 + rcx - 1]
        movq    %rdx, -8(%rsp,%rcx,8)
        decq    %rcx
        jnz     .Lpush
.Lregisters:
        testq   %rax, %rax
        jz      .Lcall
        movq    (%r10), %rdx
        cmpq    $2, %rax
        jb      .Lcall
        movq    8(%r10), %rcx
        je      .Lcall
        movq    16(%r10), %r8
        cmpq    $4, %rax
        jb      .Lcall
        movq    24(%r10), %r9
.Lcall:
        xorl    %eax, %eax              // no vector registers: the type is variadic
        call    *%r11
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   amasia_call_outlined, .-amasia_call_outlined
        .section .note.GNU-stack, "", @progbits
