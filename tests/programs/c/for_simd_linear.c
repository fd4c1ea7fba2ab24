// SPDX-License-Identifier: Apache-2.0
// Proves: for simd with linear, safelen and reduction gives what the serial loop gives.
#include <omp.h>

#include "expect.h"

static float x[2000], y[2000];

int main(void) {
  int j = 5;
  for (int i = 0; i < 2000; i++) x[i] = (float)(i % 17);
#pragma omp parallel for simd num_threads(4) linear(j : 3) safelen(8)
  for (int i = 0; i < 2000; i++) {
    y[i] = 2.0f * x[i] + (float)(j % 8);
    j += 3;
  }
  double sum = 0;
#pragma omp parallel for simd num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 2000; i++) sum += y[i];
  double expected = 0;
  for (int i = 0; i < 2000; i++) expected += 2.0f * x[i] + (float)((5 + 3 * i) % 8);
  printf("%d %.1f\n", j, sum);
  expect(j == 5 + 3 * 2000 && sum == expected);
  return expect_result();
}
