// SPDX-License-Identifier: Apache-2.0
// Proves: atomic capture hands out each ticket once, in every form.
#include <omp.h>

#include "expect.h"

static unsigned char taken[5][100];

int main(void) {
  int post = 0, pre = 0, block = 0, swap = 0, down = 100;
  long swapped = 0;
#pragma omp parallel num_threads(4) reduction(+ : swapped)
  for (int round = 0; round < 25; round++) {
    int mine;
#pragma omp atomic capture
    mine = post++;
    __atomic_add_fetch(&taken[0][mine], 1, __ATOMIC_RELAXED);
#pragma omp atomic capture
    mine = ++pre;
    __atomic_add_fetch(&taken[1][mine - 1], 1, __ATOMIC_RELAXED);
#pragma omp atomic capture
    {
      mine = block;
      block += 1;
    }
    __atomic_add_fetch(&taken[2][mine], 1, __ATOMIC_RELAXED);
#pragma omp atomic capture
    mine = down -= 1;
    __atomic_add_fetch(&taken[3][mine], 1, __ATOMIC_RELAXED);
    int give = omp_get_thread_num() * 25 + round + 1;
#pragma omp atomic capture
    {
      mine = swap;
      swap = give;
    }
    swapped += mine;
  }
  int wrong = 0;
  for (int kind = 0; kind < 4; kind++)
    for (int i = 0; i < 100; i++) wrong += taken[kind][i] != 1;
  printf("%d %ld\n", wrong, swapped + swap);
  expect(wrong == 0 && swapped + swap == 5050);
  return expect_result();
}
