// SPDX-License-Identifier: Apache-2.0
// Proves: a thread may hold one named critical section inside another, in a fixed order.
#include <omp.h>

#include "expect.h"

static int outer_count, inner_count, both;

int main(void) {
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 10; round++) {
#pragma omp critical(outer)
    {
      outer_count++;
#pragma omp critical(inner)
      {
        inner_count++;
        both++;
      }
    }
#pragma omp critical(inner)
    both++;
  }
  printf("%d %d %d\n", outer_count, inner_count, both);
  expect(outer_count == 40 && inner_count == 40 && both == 80);
  return expect_result();
}
