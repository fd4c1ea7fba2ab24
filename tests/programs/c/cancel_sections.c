// SPDX-License-Identifier: Apache-2.0
// Proves: cancel sections skips what follows in the section where cancellation is on.
#include <omp.h>

#include "expect.h"

int main(void) {
  int on = omp_get_cancellation(), late = 0, after = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp sections
    {
#pragma omp section
      {
#pragma omp cancel sections
#pragma omp atomic
        late++;
      }
#pragma omp section
      {
#pragma omp cancellation point sections
      }
    }
#pragma omp atomic
    after++;
  }
  printf("cancellation %d: %d %d\n", on, late, after);
  expect(late == !on && after == 4);
  return expect_result();
}
