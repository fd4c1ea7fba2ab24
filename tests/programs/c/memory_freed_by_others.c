// SPDX-License-Identifier: Apache-2.0
// Proves: memory that one thread allocates is freed by the next one, round after round.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static unsigned char* blocks[4][16];

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < 6; round++) {
      for (int i = 0; i < 16; i++) {
        size_t size = 8u << (i % 8);
        blocks[me][i] = i % 2 ? malloc(size) : calloc(1, size);
        if (i % 2 == 0) wrong += blocks[me][i][size - 1] != 0;
        memset(blocks[me][i], me * 16 + i, size);
      }
#pragma omp barrier
      int other = (me + 1) % 4;
      for (int i = 0; i < 16; i++) {
        wrong += blocks[other][i][0] != other * 16 + i;
        free(blocks[other][i]);
      }
#pragma omp barrier
    }
  }
  printf("%d\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
