// SPDX-License-Identifier: Apache-2.0
// Proves: schedule(runtime) obeys OMP_SCHEDULE and visits each iteration of every type once.
#include <omp.h>
#define LOOP_PRAGMA \
  _Pragma("omp parallel for num_threads(4) schedule(runtime) reduction(+ : count, sum)")
#include "loop_types.h"

int main(void) {
  omp_sched_t kind;
  int chunk;
  omp_get_schedule(&kind, &chunk);
  printf("schedule %d, chunk %d\n", (int)kind & 7, chunk);
  return run_all_types();
}
