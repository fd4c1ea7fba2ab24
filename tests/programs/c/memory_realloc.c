// SPDX-License-Identifier: Apache-2.0
// Proves: growing and shrinking by realloc keeps contents, by threads of any node.
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

int main(void) {
  int wrong = 0;
  int* shared_row = malloc(4 * sizeof *shared_row);
  for (int i = 0; i < 4; i++) shared_row[i] = i;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    int me = omp_get_thread_num();
    int* row = NULL;
    for (int count = 1; count <= 4096; count *= 4) {
      row = realloc(row, (size_t)count * sizeof *row);
      for (int i = count / 4; i < count; i++) row[i] = i * (me + 1);
    }
    row = realloc(row, 100 * sizeof *row);
    for (int i = 0; i < 100; i++) wrong += row[i] != i * (me + 1);
    free(row);
    for (int turn = 1; turn < 4; turn++) {
#pragma omp barrier
      if (me == turn) {
        shared_row = realloc(shared_row, (size_t)(4 * (turn + 1)) * sizeof *shared_row);
        for (int i = 4 * turn; i < 4 * turn + 4; i++) shared_row[i] = i;
      }
    }
  }
  for (int i = 0; i < 16; i++) wrong += shared_row[i] != i;
  free(shared_row);
  printf("%d\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
