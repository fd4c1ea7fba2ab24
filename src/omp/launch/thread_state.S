// SPDX-License-Identifier: Apache-2.0
// See thread_state.hpp.
#if !defined(__x86_64__)
#error "thread_state.S has no version for this architecture yet"
#endif

        .text
        .globl  amasia_switch
        .hidden amasia_switch
        .type   amasia_switch, @function
        .p2align 4
amasia_switch:
        .cfi_startproc
        endbr64
        movq    %rsp, (%rcx)
        movq    %rbx, 8(%rcx)
        movq    %rbp, 16(%rcx)
        movq    %r12, 24(%rcx)
        movq    %r13, 32(%rcx)
        movq    %r14, 40(%rcx)
        movq    %r15, 48(%rcx)
        stmxcsr 56(%rcx)
        fnstcw  60(%rcx)
        jmp     amasia_call_on_stack    // whose caller is that of this
        .cfi_endproc
        .size   amasia_switch, .-amasia_switch

        .globl  amasia_return_home
        .hidden amasia_return_home
        .type   amasia_return_home, @function
        .p2align 4
amasia_return_home:
        .cfi_startproc
        .cfi_undefined %rip             // no caller that an unwinder could find
        endbr64
        movq    %rbp, %rdi
        jmp     amasia_resume
        .cfi_endproc
        .size   amasia_return_home, .-amasia_return_home

        .globl  amasia_resume
        .hidden amasia_resume
        .type   amasia_resume, @function
        .p2align 4
amasia_resume:
        .cfi_startproc
        .cfi_undefined %rip
        endbr64
        ldmxcsr 56(%rdi)
        fldcw   60(%rdi)
        movq    8(%rdi), %rbx
        movq    16(%rdi), %rbp
        movq    24(%rdi), %r12
        movq    32(%rdi), %r13
        movq    40(%rdi), %r14
        movq    48(%rdi), %r15
        movq    (%rdi), %rsp
        ret
        .cfi_endproc
        .size   amasia_resume, .-amasia_resume

        .globl  amasia_enter
        .hidden amasia_enter
        .type   amasia_enter, @function
        .p2align 4
amasia_enter:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rbp, (%rcx)
        movq    %rdi, %rax
        movq    %rsi, %rdi
        movq    %rdx, %rsi
        call    *%rax
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   amasia_enter, .-amasia_enter
        .section .note.GNU-stack, "", @progbits
