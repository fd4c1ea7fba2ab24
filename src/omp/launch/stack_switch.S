// SPDX-License-Identifier: Apache-2.0
// void amasia_call_on_stack(void* stack_top, void (*function)(void*), void* argument)
#if !defined(__x86_64__)
#error "stack_switch.S has no version for this architecture yet"
#endif

        .text
        .globl  amasia_call_on_stack
        .hidden amasia_call_on_stack
        .type   amasia_call_on_stack, @function
        .p2align 4
// The frame pointer holds the old stack for the whole call and the CFA is told in terms of it, so
// an unwinder finds the caller although the stack pointer is somewhere else entirely.
amasia_call_on_stack:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rdi
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        call    *%rsi
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   amasia_call_on_stack, .-amasia_call_on_stack
        .section .note.GNU-stack, "", @progbits
