// SPDX-License-Identifier: Apache-2.0
// Proves: cancel parallel ends a region early where cancellation is on, and does nothing where off.
#include <omp.h>

#include "expect.h"

int main(void) {
  int on = omp_get_cancellation(), passed = 0, before = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp atomic
    before++;
    if (omp_get_thread_num() == 1) {
#pragma omp cancel parallel
    }
    // One barrier and no more: with none, or another before, stock libomp 19 may hang.
#pragma omp barrier
#pragma omp atomic
    passed++;
  }
  printf("cancellation %d: %d %d\n", on, before, passed);
  expect(before == 4 && passed == (on ? 0 : 4));
  return expect_result();
}
