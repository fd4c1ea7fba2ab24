// SPDX-License-Identifier: Apache-2.0
// Proves: level, team size and ancestor queries, in and out of regions.
#include <omp.h>

#include "expect.h"

int main(void) {
  expect(omp_in_parallel() == 0 && omp_get_level() == 0 && omp_get_active_level() == 0);
  expect(omp_get_num_threads() == 1 && omp_get_thread_num() == 0);
  expect(omp_get_ancestor_thread_num(0) == 0 && omp_get_team_size(0) == 1);
  expect(omp_get_ancestor_thread_num(1) == -1 && omp_get_team_size(1) == -1);
  int seen[4][6];
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    seen[me][0] = omp_in_parallel();
    seen[me][1] = omp_get_level();
    seen[me][2] = omp_get_active_level();
    seen[me][3] = omp_get_ancestor_thread_num(1);
    seen[me][4] = omp_get_team_size(1);
    seen[me][5] = omp_get_ancestor_thread_num(0) * 100 + omp_get_ancestor_thread_num(2);
  }
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 6; k++) printf("%d ", seen[i][k]);
    printf("\n");
    expect(seen[i][0] == 1 && seen[i][1] == 1 && seen[i][2] == 1 && seen[i][3] == i);
    expect(seen[i][4] == 4 && seen[i][5] == -1);
  }
  return expect_result();
}
