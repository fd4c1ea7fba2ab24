// SPDX-License-Identifier: Apache-2.0
// Proves: omp_get_wtime rises on every thread, and spans of it can be compared.
#include <omp.h>

#include "expect.h"

int main(void) {
  double start = omp_get_wtime();
  int backwards = 0;
#pragma omp parallel num_threads(4) reduction(+ : backwards)
  {
    double last = omp_get_wtime();
    for (int i = 0; i < 1000; i++) {
      double now = omp_get_wtime();
      backwards += now < last;
      last = now;
    }
  }
  double end = omp_get_wtime();
  expect(end >= start && end - start < 60 && backwards == 0 && omp_get_wtick() > 0);
  return expect_result();
}
