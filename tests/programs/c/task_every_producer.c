// SPDX-License-Identifier: Apache-2.0
// Proves: tasks made by every thread are all complete after a barrier, on every node.
#include <omp.h>

#include "expect.h"

static int done[4][32];

int main(void) {
  int missing = 0;
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    for (int round = 1; round <= 4; round++) {
      for (int i = 0; i < 32; i++) {
#pragma omp task firstprivate(i, me, round)
        done[me][i] += round;
      }
#pragma omp barrier
      for (int thread = 0; thread < 4; thread++)
        for (int i = 0; i < 32; i++)
          if (done[thread][i] != round * (round + 1) / 2)
            __atomic_add_fetch(&missing, 1, __ATOMIC_RELAXED);
#pragma omp barrier
    }
  }
  printf("%d %d\n", done[3][31], missing);
  expect(missing == 0 && done[3][31] == 10);
  return expect_result();
}
