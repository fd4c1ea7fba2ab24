// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/movable_threads.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

bool moves(std::initializer_list<std::string_view> imports) { return lets_threads_move(imports); }

TEST(MovableThreads, ConstructsOfWhichEachCallIsOurs) {
  for (const char* const name :
       {"__kmpc_barrier", "__kmpc_for_static_init_8u", "__kmpc_dispatch_next_4", "__kmpc_fork_call",
        "__kmpc_reduce_nowait", "GOMP_barrier", "GOMP_loop_ull_guided_next", "GOMP_single_copy_end",
        "GOMP_parallel_loop_nonmonotonic_dynamic", "GOMP_critical_name_start", "omp_set_lock",
        "malloc", "exp"}) {
    EXPECT_TRUE(moves({name})) << name;
  }
}

TEST(MovableThreads, WhatTheNextRuntimeKnowsItsThreadsBy) {
  for (const char* const name :
       {"__kmpc_omp_task", "__kmpc_fork_call_if", "__kmpc_serialized_parallel",
        "__kmpc_push_num_threads_list", "__kmpc_threadprivate_cached", "__kmpc_cancel_barrier",
        "__kmpc_alloc", "GOMP_task", "GOMP_barrier_cancel", "GOMP_loop_end_cancel",
        "GOMP_parallel_reductions", "GOMP_loop_start", "GOMP_taskgroup_start", "GOMP_new_in_2030",
        "__kmpc_new_in_2030"}) {
    EXPECT_FALSE(moves({name})) << name;
  }
}

TEST(MovableThreads, WhatIsTheThreadsOwn) {
  for (const char* const name : {"pthread_self", "pthread_getspecific", "__tls_get_addr"}) {
    EXPECT_FALSE(moves({"GOMP_barrier", name})) << name;
    EXPECT_TRUE(moves({name, "malloc"})) << name << " in a library without regions";
  }
}

TEST(MovableThreads, WhatCanBeToldWhereAThreadStands) {
  const auto may_keep = [](std::initializer_list<std::string_view> imports) {
    return may_keep_own_addresses(imports);
  };
  for (const char* const name : {"__errno_location", "__ctype_b_loc", "__ctype_toupper_loc"}) {
    EXPECT_TRUE(moves({"GOMP_barrier", name})) << name;
    EXPECT_TRUE(may_keep({"GOMP_barrier", name})) << name;
  }
  EXPECT_FALSE(may_keep({"GOMP_barrier", "malloc"}));
}

}  // namespace
}  // namespace amasia::omp
