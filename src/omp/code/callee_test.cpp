// SPDX-License-Identifier: Apache-2.0
#include "omp/code/callee.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

TEST(Callee, IsKnownByItsName) {
  EXPECT_EQ(callee_named("__kmpc_for_static_init_8u"), Callee::kBounds);
  EXPECT_EQ(callee_named("__kmpc_end_reduce_nowait"), Callee::kReduced);
  EXPECT_EQ(callee_named("__kmpc_end_reduce"), Callee::kConstruct);
  EXPECT_EQ(callee_named("__kmpc_critical_with_hint"), Callee::kIteration);
  EXPECT_EQ(callee_named("__kmpc_cancel"), Callee::kConstruct);
  EXPECT_EQ(callee_named("GOMP_atomic_start"), Callee::kIteration);
  EXPECT_EQ(callee_named("GOMP_critical_name_end"), Callee::kIteration);
  EXPECT_EQ(callee_named("GOMP_barrier"), Callee::kConstruct);
  EXPECT_EQ(callee_named("omp_get_thread_num"), Callee::kThreadNumber);
  EXPECT_EQ(callee_named("omp_get_thread_num_"), Callee::kConstruct) << "a Fortran program asks";
  EXPECT_EQ(callee_named("omp_get_num_threads"), Callee::kTeamSize);
  EXPECT_EQ(callee_named("omp_get_num_teams"), Callee::kConstruct);
  EXPECT_EQ(callee_named("qsort"), Callee::kOther);
  EXPECT_EQ(callee_named("abort"), Callee::kEnds);
  EXPECT_EQ(callee_named("abort_if_asked"), Callee::kOther) << "it may come back";
}

}  // namespace
}  // namespace amasia::omp
