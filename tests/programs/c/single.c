// SPDX-License-Identifier: Apache-2.0
// Proves: one thread runs each single, the others wait for it unless told not to.
#include <omp.h>

#include "expect.h"

int main(void) {
  int count = 0, value = 0, lost = 0, loose = 0;
#pragma omp parallel num_threads(4)
  {
    for (int round = 1; round <= 25; round++) {
#pragma omp single
      {
        count++;
        value = round;
      }
      if (value != round) __atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
#pragma omp barrier
    }
    for (int round = 0; round < 40; round++) {
#pragma omp single nowait
      __atomic_add_fetch(&loose, 1, __ATOMIC_RELAXED);
    }
  }
  printf("%d %d %d\n", count, lost, loose);
  expect(count == 25 && lost == 0 && loose == 40);
  return expect_result();
}
