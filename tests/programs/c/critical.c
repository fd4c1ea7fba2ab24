// SPDX-License-Identifier: Apache-2.0
// Proves: unnamed and named critical sections exclude each thread of every node.
#include <omp.h>

#include "expect.h"

static int unnamed, first, second, inside;

int main(void) {
  int overlaps = 0;
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 25; round++) {
#pragma omp critical
    {
      if (++inside != 1) overlaps++;
      unnamed++;
      inside--;
    }
#pragma omp critical(one)
    first++;
#pragma omp critical(two)
    second += 2;
  }
  printf("%d %d %d %d\n", unnamed, first, second, overlaps);
  expect(unnamed == 100 && first == 100 && second == 200 && overlaps == 0);
  return expect_result();
}
