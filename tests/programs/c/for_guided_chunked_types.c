// SPDX-License-Identifier: Apache-2.0
// Proves: schedule(guided, 4) over every integer type and range visits each iteration once.
#define LOOP_PRAGMA \
  _Pragma("omp parallel for num_threads(4) schedule(guided, 4) reduction(+ : count, sum)")
#include "loop_types.h"

int main(void) { return run_all_types(); }
