// SPDX-License-Identifier: Apache-2.0
// Proves: a region inside a region forks its own team, with its own numbers and reductions.
#include <omp.h>

#include "expect.h"

int main(void) {
  omp_set_max_active_levels(2);
  int sums[3] = {0}, outer[3] = {-1, -1, -1}, levels[3] = {0};
#pragma omp parallel num_threads(3)
  {
    int me = omp_get_thread_num();
    int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    {
      sum += 100 * me + 10 * omp_get_num_threads() + omp_get_thread_num();
#pragma omp barrier
#pragma omp master
      {
        outer[me] = omp_get_ancestor_thread_num(1);
        levels[me] = omp_get_level() * 10 + omp_get_active_level();
      }
    }
    sums[me] = sum;
  }
  for (int i = 0; i < 3; i++) {
    printf("%d %d %d\n", sums[i], outer[i], levels[i]);
    expect(sums[i] == 200 * i + 41 && outer[i] == i && levels[i] == 22);
  }
  return expect_result();
}
