// SPDX-License-Identifier: Apache-2.0
// delegate: what a program asks of the kernel on a node where the kernel would answer wrongly.
// Depends on base, os, fabric. A futex on a word of managed memory would sleep on one node and be
// woken on another; a descriptor names something else on each node. Both are caught as system calls
// (os/syscall_trap.hpp), so that mutexes, condition variables, static guards, FILEs and descriptors
// work on every node as the C library makes them work.
//
// Invariants
//  G1  One table of futex waiters for the job, at the origin. A waiter reads the word only after it
//      is in the table, so that a wake-up that follows a store to the word finds it. (The word is
//      managed memory, which is sequentially consistent.)
//  G2  The program's descriptors are the origin's. A call on one of them is carried there, or
//      refused with an errno and, once, a sentence. It never reaches another file.
//  G3  What the service thread touches is runtime memory: arguments are copied out, and results
//      in, by the thread that made the call.
#pragma once

#include "delegate/delegation.hpp"
