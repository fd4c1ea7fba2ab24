// SPDX-License-Identifier: Apache-2.0
// Proves: loops without a barrier between them, more of them than any ring of loop records is long.
#include <omp.h>

#include "expect.h"

enum { kLoops = 40, kCount = 64 };
static int visits[kLoops][kCount];

int main(void) {
#pragma omp parallel num_threads(4)
  {
    for (int loop = 0; loop < kLoops; loop++) {
      switch (loop % 3) {
        case 0:
#pragma omp for schedule(dynamic, 2) nowait
          for (int i = 0; i < kCount; i++)
            __atomic_add_fetch(&visits[loop][i], 1, __ATOMIC_RELAXED);
          break;
        case 1:
#pragma omp for schedule(static) nowait
          for (int i = 0; i < kCount; i++)
            __atomic_add_fetch(&visits[loop][i], 1, __ATOMIC_RELAXED);
          break;
        default:
#pragma omp for schedule(guided) nowait
          for (int i = kCount - 1; i >= 0; i--)
            __atomic_add_fetch(&visits[loop][i], 1, __ATOMIC_RELAXED);
      }
    }
  }
  int wrong = 0;
  for (int loop = 0; loop < kLoops; loop++)
    for (int i = 0; i < kCount; i++) wrong += visits[loop][i] != 1;
  printf("%d wrong\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
