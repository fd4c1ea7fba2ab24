// SPDX-License-Identifier: Apache-2.0
// Proves: depend(sink) of one dimension makes iterations wait for the ones they name.
#include <omp.h>

#include "expect.h"

static long fibonacci[70];

int main(void) {
  fibonacci[0] = 0;
  fibonacci[1] = 1;
#pragma omp parallel for num_threads(4) ordered(1) schedule(static, 1)
  for (int i = 2; i < 70; i++) {
#pragma omp ordered depend(sink : i - 1)
    fibonacci[i] = fibonacci[i - 1] + fibonacci[i - 2];
#pragma omp ordered depend(source)
  }
  printf("%ld\n", fibonacci[69]);
  expect(fibonacci[69] == 117669030460994L);
  return expect_result();
}
