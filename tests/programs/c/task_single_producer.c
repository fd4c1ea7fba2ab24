// SPDX-License-Identifier: Apache-2.0
// Proves: tasks made by one thread all have run by the barrier, with their own captured values.
#include <omp.h>

#include "expect.h"

static long results[100];

int main(void) {
#pragma omp parallel num_threads(4)
  {
#pragma omp single
    for (int i = 0; i < 100; i++) {
      int square = i * i;
#pragma omp task firstprivate(i, square)
      results[i] = square + 1;
    }
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += results[i];
    expect(sum == 328350 + 100);
  }
  printf("%ld\n", results[99]);
  return expect_result();
}
