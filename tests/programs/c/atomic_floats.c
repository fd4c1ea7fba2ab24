// SPDX-License-Identifier: Apache-2.0
// Proves: atomic updates of float, double and long double lose nothing.
#include <omp.h>

#include "expect.h"

int main(void) {
  float f = 0;
  double d = 0, scaled = 1, last = 0;
  long double l = 0;
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 32; round++) {
#pragma omp atomic
    f += 0.5f;
#pragma omp atomic
    d -= 0.25;
#pragma omp atomic
    l += 2.0L;
#pragma omp atomic
    scaled *= (round % 2 ? 0.5 : 2.0);
#pragma omp atomic write
    last = 9.75;
  }
  double seen;
#pragma omp atomic read
  seen = last;
  printf("%g %g %Lg %g %g\n", (double)f, d, l, scaled, seen);
  expect(f == 64.0f && d == -32.0 && l == 256.0L && scaled == 1.0 && seen == 9.75);
  return expect_result();
}
