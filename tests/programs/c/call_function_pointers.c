// SPDX-License-Identifier: Apache-2.0
// Proves: function pointers, also of library functions, call the same function on each node.
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

typedef double (*Function)(double);
static double twice(double x) { return 2 * x; }
static double square(double x) { return x * x; }
static Function table[4] = {twice, square, sqrt, fabs};

static int compare_down(const void* a, const void* b) { return *(const int*)b - *(const int*)a; }
static void (*sorter)(void*, size_t, size_t, int (*)(const void*, const void*)) = qsort;

int main(void) {
  double results[4][4];
  int rows[4][10];
  Function chosen = twice;
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    for (int i = 0; i < 4; i++) results[me][i] = table[(i + me) % 4](16.0);
    for (int i = 0; i < 10; i++) rows[me][i] = (i * 7 + me) % 10;
    sorter(rows[me], 10, sizeof(int), compare_down);
#pragma omp barrier
#pragma omp single
    chosen = square;
    results[me][0] += chosen(3.0);
  }
  for (int me = 0; me < 4; me++) {
    for (int i = 0; i < 4; i++) printf("%g ", results[me][i]);
    printf("%d %d\n", rows[me][0], rows[me][9]);
    expect(rows[me][0] == 9 && rows[me][9] == 0);
  }
  expect(results[0][0] == 41 && results[1][0] == 265);
  return expect_result();
}
