// SPDX-License-Identifier: Apache-2.0
// Proves: sections met many times without a barrier are handed out once each time.
#include <omp.h>

#include "expect.h"

int main(void) {
  int first = 0, second = 0, third = 0;
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 30; round++) {
#pragma omp sections nowait
    {
#pragma omp section
      __atomic_add_fetch(&first, 1, __ATOMIC_RELAXED);
#pragma omp section
      __atomic_add_fetch(&second, 2, __ATOMIC_RELAXED);
#pragma omp section
      __atomic_add_fetch(&third, 3, __ATOMIC_RELAXED);
    }
  }
  printf("%d %d %d\n", first, second, third);
  expect(first == 30 && second == 60 && third == 90);
  return expect_result();
}
