// SPDX-License-Identifier: Apache-2.0
// Proves: work-sharing, single and critical bind to the innermost team.
#include <omp.h>

#include "expect.h"

int main(void) {
  omp_set_max_active_levels(2);
  int loops[6] = {0}, singles = 0, criticals = 0, outer_loop = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 6; i++) {
#pragma omp atomic
      outer_loop++;
      int loop = 0;
#pragma omp parallel num_threads(2)
      {
#pragma omp for schedule(dynamic, 2) reduction(+ : loop)
        for (int k = 0; k < 10; k++) loop++;
#pragma omp single
#pragma omp atomic
        singles++;
#pragma omp critical(inner)
        criticals++;
      }
      loops[i] = loop;
    }
  }
  for (int i = 0; i < 6; i++) expect(loops[i] == 10);
  printf("%d %d %d\n", outer_loop, singles, criticals);
  expect(outer_loop == 6 && singles == 6 && criticals == 12);
  return expect_result();
}
