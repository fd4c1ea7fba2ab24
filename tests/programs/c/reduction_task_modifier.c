// SPDX-License-Identifier: Apache-2.0
// Proves: in_reduction of tasks, by a reduction with the task modifier and by task_reduction.
#include <omp.h>

#include "expect.h"

int main(void) {
  int total = 0;
#pragma omp parallel num_threads(4) reduction(task, + : total)
  {
    total += 1;
    for (int i = 0; i < 5; i++) {
#pragma omp task in_reduction(+ : total)
      total += 10;
    }
  }
  int grouped = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  {
#pragma omp taskgroup task_reduction(+ : grouped)
    {
      for (int i = 1; i <= 20; i++) {
#pragma omp task in_reduction(+ : grouped) firstprivate(i)
        grouped += i;
      }
    }
  }
  printf("%d %d\n", total, grouped);
  expect(total == 4 + 200 && grouped == 210);
  return expect_result();
}
