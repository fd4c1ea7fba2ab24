// SPDX-License-Identifier: Apache-2.0
// Proves: several regions that go over the same arrays in turn, for many rounds, compute what they
// do plainly while the runtime finds out how they are best shared, each by itself and all together.
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 400000, kRounds = 250 };

int main(void) {
  double* x = malloc(kCount * sizeof *x);
  double* y = malloc(kCount * sizeof *y);
  double* z = malloc(kCount * sizeof *z);
  long wrong = 0;
#pragma omp parallel for
  for (long i = 0; i < kCount; ++i) {
    x[i] = (double)(i % 1000);
    y[i] = z[i] = 0;
  }
  for (int round = 1; round <= kRounds; ++round) {
    double sum = 0;
#pragma omp parallel for
    for (long i = 1; i < kCount - 1; ++i) {
      double value = 0;
      for (int k = 0; k < 24; ++k) value += x[i - 1] + x[i] + x[i + 1] - x[i] * 3;
      y[i] = value + x[i];
    }
#pragma omp parallel for reduction(+ : sum)
    for (long i = 1; i < kCount - 1; ++i) sum += y[i] - z[i];
#pragma omp parallel for
    for (long i = 1; i < kCount - 1; ++i) z[i] = y[i];
#pragma omp parallel for
    for (long i = 0; i < kCount; ++i) x[i] += 1;
    // Neighbours differ by 1, but where the values begin anew.
    if (round > 1 && sum != kCount - 2) ++wrong;
  }
  printf("%ld rounds wrong, x[7] %g, z[7] %g\n", wrong, x[7], z[7]);
  return wrong != 0;
}
