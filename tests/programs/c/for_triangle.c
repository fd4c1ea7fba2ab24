// SPDX-License-Identifier: Apache-2.0
// Proves: a loop over the rows of a triangle, the last of which have most of the work, in steps.
// for_triangle [rows [steps]]
#include <stdlib.h>

#include "expect.h"

static double weigh(double value, long times) {
  for (long i = 0; i < times; ++i) value = value * 0.75 + 1;
  return value;
}

int main(int argc, char** argv) {
  const long rows = argc > 1 ? atol(argv[1]) : 200;
  const int steps = argc > 2 ? atoi(argv[2]) : 4;
  double* const sums = calloc((size_t)rows, sizeof *sums);
  for (int step = 0; step < steps; ++step) {
#pragma omp parallel for schedule(static)
    for (long row = 0; row < rows; ++row) sums[row] = weigh(sums[row] + (double)row, row);
  }
  double sum = 0;
  for (long row = 0; row < rows; ++row) {
    double expected = 0;
    for (int step = 0; step < steps; ++step) expected = weigh(expected + (double)row, row);
    expect(sums[row] == expected);
    sum += sums[row];
  }
  free(sums);
  printf("%.3f\n", sum);
  return expect_result();
}
