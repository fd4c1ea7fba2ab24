// SPDX-License-Identifier: Apache-2.0
// Proves: cancel for ends a static loop early where cancellation is on; later loops are whole.
#include <omp.h>

#include "expect.h"

int main(void) {
  int on = omp_get_cancellation(), after = 0, late = 0;
  int found = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp for schedule(static)
    for (int i = 0; i < 400; i++) {
#pragma omp cancellation point for
      if (i == 30) {
#pragma omp atomic write
        found = 1;
#pragma omp cancel for
#pragma omp atomic
        late++;
      }
    }
#pragma omp for
    for (int i = 0; i < 100; i++) {
#pragma omp atomic
      after++;
    }
  }
  printf("cancellation %d: %d %d %d\n", on, found, late, after);
  expect(found == 1 && late == !on && after == 100);
  return expect_result();
}
