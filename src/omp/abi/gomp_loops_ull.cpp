// SPDX-License-Identifier: Apache-2.0
// GOMP entry points of loops whose variable is an unsigned long long (gcc's for unsigned types that
// do not fit a long). `up`: the loop rises; a falling one's step is its two's complement.
#include "omp/abi/gomp_constructs.hpp"
#include "omp/abi/gomp_reductions.hpp"

namespace amasia::omp::gomp {
namespace {
using Variable = Ull;
}  // namespace

#define AMASIA_LOOP(NAME) GOMP_loop_ull_##NAME
#define AMASIA_UP_TYPE bool,
#define AMASIA_UP_PARAMETER bool up,
#define AMASIA_UP up,
#include "omp/abi/gomp_loop_entries.inc"

}  // namespace amasia::omp::gomp
