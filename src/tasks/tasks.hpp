// SPDX-License-Identifier: Apache-2.0
// tasks: composable tasks on suspendable stacks, with futures and finish scopes; what a program
// sees of it is include/amasia/tasks.hpp. May use base, os and machine.
//
//   deque, waiter_list, finish_count, idle_workers   the concurrent cores; each explored over all
//                                                    interleavings (interleavings.hpp)
//   fiber, stack_pool                                stacks, and switching
//   errands, poll_pace, module                       what worker 0 does for modules
//   scheduler, scope, api                            workers; what the public header calls
// Invariants: no task is dropped; a wait never blocks a worker's thread; a worker sleeps only when
// there is nothing that it may run.
#pragma once

#include "tasks/deque.hpp"
#include "tasks/errands.hpp"
#include "tasks/finish_count.hpp"
#include "tasks/idle_workers.hpp"
#include "tasks/scheduler.hpp"
#include "tasks/waiter_list.hpp"
