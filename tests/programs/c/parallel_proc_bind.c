// SPDX-License-Identifier: Apache-2.0
// Proves: proc_bind of each kind keeps teams whole and results right.
#include <omp.h>

#include "expect.h"

int main(void) {
  int primary = 0, close = 0, spread = 0;
#pragma omp parallel num_threads(4) proc_bind(master) reduction(+ : primary)
  primary += omp_get_num_threads();
#pragma omp parallel num_threads(3) proc_bind(close) reduction(+ : close)
  close += omp_get_num_threads();
#pragma omp parallel proc_bind(spread) num_threads(4) reduction(+ : spread)
  spread += omp_get_num_threads();
  printf("%d %d %d\n", primary, close, spread);
  expect(primary == 16 && close == 9 && spread == 16);
  return expect_result();
}
