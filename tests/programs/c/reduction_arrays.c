// SPDX-License-Identifier: Apache-2.0
// Proves: reductions of whole arrays and array sections, fixed and of variable length.
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

int main(void) {
  int histogram[16] = {0};
  int size = 40;
  double* wide = calloc((size_t)size, sizeof *wide);
  long matrix[3][4] = {{0}};
#pragma omp parallel for num_threads(4) reduction(+ : histogram, wide[ : size], matrix)
  for (int i = 0; i < 4000; i++) {
    histogram[i * 7 % 16]++;
    wide[i % size] += i;
    matrix[i % 3][i % 4] += 1;
  }
  for (int i = 0; i < 16; i++) expect(histogram[i] == 250);
  double sum = 0;
  for (int i = 0; i < size; i++) sum += wide[i];
  long cells = 0;
  for (int i = 0; i < 12; i++) cells += ((long*)matrix)[i];
  printf("%d %g %ld %ld\n", histogram[3], sum, cells, matrix[1][2]);
  expect(sum == 3999.0 * 2000 && cells == 4000);
  int part[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
#pragma omp parallel num_threads(4) reduction(+ : part[2 : 5])
  for (int i = 2; i < 7; i++) part[i] += omp_get_thread_num();
  for (int i = 0; i < 10; i++) expect(part[i] == (i >= 2 && i < 7 ? 7 : 1));
  free(wide);
  return expect_result();
}
