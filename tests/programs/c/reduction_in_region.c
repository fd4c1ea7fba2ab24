// SPDX-License-Identifier: Apache-2.0
// Proves: reductions on loops inside one region, with and without nowait, many times over.
#include <omp.h>

#include "expect.h"

int main(void) {
  long first = 0, second = 0, third = 0;
#pragma omp parallel num_threads(4)
  {
    for (int round = 0; round < 10; round++) {
#pragma omp for reduction(+ : first)
      for (int i = 0; i < 50; i++) first += i;
#pragma omp for reduction(+ : second) nowait
      for (int i = 0; i < 50; i++) second += 2 * i;
#pragma omp barrier
#pragma omp single
      third += first + second;
    }
#pragma omp sections reduction(+ : third)
    {
#pragma omp section
      third += 1;
#pragma omp section
      third += 2;
    }
  }
  printf("%ld %ld %ld\n", first, second, third);
  expect(first == 12250 && second == 24500);
  expect(third == 3675L * 55 + 3);
  return expect_result();
}
