// SPDX-License-Identifier: Apache-2.0
// Proves: so it does where the loop is to be divided into chunks.
#define LOOP_PRAGMA \
  _Pragma("omp parallel for num_threads(1) schedule(static, 3) reduction(+ : count, sum)")
#include "loop_types.h"

int main(void) { return run_all_types(); }
