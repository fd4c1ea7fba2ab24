// SPDX-License-Identifier: Apache-2.0
// Proves: taskloop covers its iterations once with grainsize, num_tasks, collapse and reduction.
#include <omp.h>

#include "expect.h"

static unsigned char visits[3][200];

int main(void) {
  long sum = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  {
#pragma omp taskloop grainsize(7)
    for (int i = 0; i < 200; i++) __atomic_add_fetch(&visits[0][i], 1, __ATOMIC_RELAXED);
#pragma omp taskloop num_tasks(9)
    for (int i = 199; i >= 0; i--) __atomic_add_fetch(&visits[1][i], 1, __ATOMIC_RELAXED);
#pragma omp taskloop collapse(2) grainsize(5)
    for (int x = 0; x < 20; x++)
      for (int y = 0; y < 10; y++)
        __atomic_add_fetch(&visits[2][x * 10 + y], 1, __ATOMIC_RELAXED);
#pragma omp taskloop reduction(+ : sum)
    for (int i = 0; i < 300; i++) sum += i;
  }
  int wrong = 0;
  for (int kind = 0; kind < 3; kind++)
    for (int i = 0; i < 200; i++) wrong += visits[kind][i] != 1;
  printf("%d %ld\n", wrong, sum);
  expect(wrong == 0 && sum == 44850);
  return expect_result();
}
