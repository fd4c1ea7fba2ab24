// SPDX-License-Identifier: Apache-2.0
// Proves: cancel taskgroup drops tasks of its group only.
#include <omp.h>

#include "expect.h"

int main(void) {
  int on = omp_get_cancellation(), ran = 0, others = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  {
#pragma omp taskgroup
    {
#pragma omp task if (0)
      {
#pragma omp cancel taskgroup
      }
      for (int i = 0; i < 20; i++) {
#pragma omp task shared(ran)
#pragma omp atomic
        ran++;
      }
    }
#pragma omp taskgroup
    for (int i = 0; i < 20; i++) {
#pragma omp task shared(others)
#pragma omp atomic
      others++;
    }
  }
  printf("cancellation %d: %d %d\n", on, ran, others);
  expect(ran == (on ? 0 : 20) && others == 20);
  return expect_result();
}
