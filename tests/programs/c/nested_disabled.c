// SPDX-License-Identifier: Apache-2.0
// Proves: with one active level an inner region is a team of one.
#include <omp.h>

#include "expect.h"

int main(void) {
  omp_set_max_active_levels(1);
  int sizes[4], levels[4], loops[4];
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
#pragma omp parallel num_threads(3)
    {
      sizes[me] = omp_get_num_threads();
      levels[me] = omp_get_level();
      int count = 0;
#pragma omp for schedule(dynamic)
      for (int i = 0; i < 9; i++) count++;
      loops[me] = count;
    }
  }
  for (int i = 0; i < 4; i++) {
    printf("%d %d %d\n", sizes[i], levels[i], loops[i]);
    expect(sizes[i] == 1 && levels[i] == 2 && loops[i] == 9);
  }
  return expect_result();
}
