// SPDX-License-Identifier: Apache-2.0
// Proves: the if clause makes a region serial or parallel by a value known only when it runs.
#include <omp.h>

#include "expect.h"

static int team_size(int wanted) {
  int size = 0, in_parallel = -1;
#pragma omp parallel if (wanted)
  {
#pragma omp master
    {
      size = omp_get_num_threads();
      in_parallel = omp_in_parallel();
    }
  }
  expect((in_parallel != 0) == (size > 1));
  return size;
}

int main(void) {
  int many = omp_get_max_threads();
  for (int round = 0; round < 6; round++) {
    int size = team_size(round % 2);
    expect(size == (round % 2 ? many : 1));
    printf("round %d: %d\n", round, size);
  }
  return expect_result();
}
