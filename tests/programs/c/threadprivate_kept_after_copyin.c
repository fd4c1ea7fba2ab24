// SPDX-License-Identifier: Apache-2.0
// Proves: what copyin and a region's threads leave in threadprivate variables is what the threads
// of the next regions of as many threads find there.
#include <omp.h>

#include "expect.h"

static int seed = 1;
static double table[4];
#pragma omp threadprivate(seed, table)

int main(void) {
  omp_set_dynamic(0);
  seed = 42;
  table[2] = 7;
#pragma omp parallel num_threads(4) copyin(seed, table)
  {
    seed += omp_get_thread_num();
    table[1] = table[2] + seed;
  }
  for (int round = 0; round < 3; round++) {
    int seeds[4];
    double sums[4];
#pragma omp parallel num_threads(4)
    {
      int me = omp_get_thread_num();
      seeds[me] = seed;
      sums[me] = table[1];
      seed += 100;
    }
    for (int i = 0; i < 4; i++) {
      printf("%d %g\n", seeds[i], sums[i]);
      expect(seeds[i] == 42 + i + 100 * round && sums[i] == 49 + i);
    }
  }
  return expect_result();
}
