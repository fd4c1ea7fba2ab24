// SPDX-License-Identifier: Apache-2.0
// Proves: atomic updates of complex numbers, and products of long double, lose nothing.
#include <complex.h>
#include <omp.h>

#include "expect.h"

int main(void) {
  float _Complex f = 0;
  double _Complex d = 0;
  long double product = 1;
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 20; round++) {
#pragma omp atomic
    f += 1.0f + 0.5f * I;
#pragma omp atomic
    d -= 2.0 - 3.0 * I;
#pragma omp atomic
    product *= (round % 2 ? 4.0L : 0.25L);
  }
  printf("%g%+gi %g%+gi %Lg\n", (double)crealf(f), (double)cimagf(f), creal(d), cimag(d), product);
  expect(crealf(f) == 80 && cimagf(f) == 40 && creal(d) == -160 && cimag(d) == 240);
  expect(product == 1);
  return expect_result();
}
