// SPDX-License-Identifier: Apache-2.0
// Proves: three hundred barriers in one region, with a thread count read in between.
#include <omp.h>

#include "expect.h"

static int arrived;

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(4)
  for (int round = 1; round <= 60; round++) {
#pragma omp atomic
    arrived++;
#pragma omp barrier
    if (arrived != round * 4) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) {
#pragma omp barrier
    }
  }
  printf("%d %d\n", arrived, wrong);
  expect(arrived == 240 && wrong == 0);
  return expect_result();
}
