// SPDX-License-Identifier: Apache-2.0
// Proves: a relaxation over a shared grid gives bit for bit what one thread gives.
#include <omp.h>
#include <string.h>

#include "expect.h"

enum { kSide = 130, kSweeps = 20 };
static double grids[2][kSide][kSide];

static double relax(int threads) {
  memset(grids, 0, sizeof grids);
  for (int i = 0; i < kSide; i++) grids[0][0][i] = grids[1][0][i] = i % 7;
#pragma omp parallel num_threads(threads)
  for (int sweep = 0; sweep < kSweeps; sweep++) {
    double(*from)[kSide] = grids[sweep % 2], (*to)[kSide] = grids[1 - sweep % 2];
#pragma omp for
    for (int i = 1; i < kSide - 1; i++)
      for (int j = 1; j < kSide - 1; j++)
        to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
  }
  double sum = 0;
  for (int i = 0; i < kSide; i++)
    for (int j = 0; j < kSide; j++) sum += grids[kSweeps % 2][i][j] * ((i * 31 + j) % 5);
  return sum;
}

int main(void) {
  double many = relax(4), one = relax(1);
  printf("%.17g\n", many);
  expect(many == one);
  return expect_result();
}
