// SPDX-License-Identifier: Apache-2.0
// void amasia_os_call_on_stack(void* top, void (*function)(void*), void* argument)
//
// The frame pointer keeps the old stack during the call, and the CFA is told in terms of it, so
// that debuggers and unwinders find the caller. `top` must be 16-byte aligned.
        .text
        .globl  amasia_os_call_on_stack
        .hidden amasia_os_call_on_stack
        .type   amasia_os_call_on_stack, @function
        .p2align 4
amasia_os_call_on_stack:
        .cfi_startproc
#if defined(__x86_64__)
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rdi, %rsp
        movq    %rdx, %rdi
        call    *%rsi
        movq    %rbp, %rsp
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
#elif defined(__aarch64__)
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        .cfi_offset 30, -8
        mov     x29, sp
        .cfi_def_cfa_register 29
        mov     sp, x0
        mov     x0, x2
        blr     x1
        mov     sp, x29
        .cfi_def_cfa_register 31
        ldp     x29, x30, [sp], #16
        ret
#else
#error "no version of amasia_os_call_on_stack for this architecture"
#endif
        .cfi_endproc
        .size   amasia_os_call_on_stack, .-amasia_os_call_on_stack
        .section .note.GNU-stack, "", %progbits
