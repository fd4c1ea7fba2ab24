// SPDX-License-Identifier: Apache-2.0
// Running main so that all it can reach is managed: on a managed stack, with managed copies of its
// arguments and environment.
#pragma once

#include "base/base.hpp"
#include "dsm/dsm.hpp"
#include "omp/launch/stack_pool.hpp"

namespace amasia::omp {

using MainFunction = int (*)(int, char**, char**);

struct MainArguments {
  int count = 0;
  char** values = nullptr;
  char** environment = nullptr;
};

// Copies argument strings, environment and what the kernel put behind it (the auxiliary vector),
// and lets the C library's pointers to them follow. The copies are never freed.
MainArguments copy_arguments(dsm::Heap& heap, const MainArguments& original);

// The stack part of a node's arena: the main stack at its low end, the rest for teams.
struct StackPlan {
  dsm::AddressRange main;  // the guard pages at both ends included
  dsm::AddressRange teams;
};
StackPlan plan_stacks(dsm::AddressRange stacks);

// Calls main on a stack in StackPlan::main and returns its result. Exceptions and pthread_exit pass
// through.
int run_main(dsm::AddressRange range, MainFunction main, const MainArguments& arguments);

}  // namespace amasia::omp
