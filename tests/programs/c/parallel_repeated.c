// SPDX-License-Identifier: Apache-2.0
// Proves: hundreds of regions after one another, of changing sizes, each runs once on each thread.
#include <omp.h>

#include "expect.h"

int main(void) {
  long total = 0, expected = 0;
  for (int round = 0; round < 200; round++) {
    int size = 1 + round % 4;
    long here = 0;
#pragma omp parallel num_threads(size) reduction(+ : here)
    here += round * 10 + omp_get_thread_num();
    total += here;
    for (int thread = 0; thread < size; thread++) expected += round * 10 + thread;
  }
  printf("%ld\n", total);
  expect(total == expected);
  return expect_result();
}
