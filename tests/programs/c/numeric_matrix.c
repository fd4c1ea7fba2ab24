// SPDX-License-Identifier: Apache-2.0
// Proves: matrix product and transposition of integers, verified against the serial ones.
#include <omp.h>

#include "expect.h"

enum { kSize = 96 };
static int a[kSize][kSize], b[kSize][kSize], c[kSize][kSize], t[kSize][kSize];

int main(void) {
#pragma omp parallel num_threads(4)
  {
#pragma omp for
    for (int i = 0; i < kSize; i++)
      for (int j = 0; j < kSize; j++) {
        a[i][j] = (i * 3 + j) % 11;
        b[i][j] = (i - j) % 7;
      }
#pragma omp for collapse(2)
    for (int i = 0; i < kSize; i++)
      for (int j = 0; j < kSize; j++) {
        int sum = 0;
        for (int k = 0; k < kSize; k++) sum += a[i][k] * b[k][j];
        c[i][j] = sum;
      }
#pragma omp for schedule(dynamic, 8)
    for (int i = 0; i < kSize; i++)
      for (int j = 0; j < kSize; j++) t[i][j] = c[j][i];
  }
  unsigned long check = 0;
  for (int i = 0; i < kSize; i++)
    for (int j = 0; j < kSize; j++) {
      int sum = 0;
      for (int k = 0; k < kSize; k++) sum += a[j][k] * b[k][i];
      if (t[i][j] != sum) expect(!"equal");
      check = check * 31 + (unsigned)t[i][j];
    }
  printf("%lu\n", check);
  return expect_result();
}
