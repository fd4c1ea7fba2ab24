// SPDX-License-Identifier: Apache-2.0
// Proves: master is thread 0 and masked the thread of its filter, neither with a barrier.
#include <omp.h>

#include "expect.h"

int main(void) {
  int by[6] = {0}, runs = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp master
    {
      by[0] = omp_get_thread_num() + 1;
      runs++;
    }
#pragma omp barrier
#pragma omp masked
    by[1] = omp_get_thread_num() + 1;
    for (int thread = 0; thread < 4; thread++) {
#pragma omp masked filter(thread)
      by[2 + thread] = omp_get_thread_num() + 1;
    }
  }
  for (int i = 0; i < 6; i++) printf("%d ", by[i]);
  printf("\n");
  expect(runs == 1 && by[0] == 1 && by[1] == 1);
  for (int thread = 0; thread < 4; thread++) expect(by[2 + thread] == thread + 1);
  return expect_result();
}
