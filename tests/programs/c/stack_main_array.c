// SPDX-License-Identifier: Apache-2.0
// Proves: arrays on the stack of main are shared by all threads of a region.
#include <omp.h>

#include "expect.h"

int main(void) {
  int numbers[8192];
  double sums[4] = {0};
  for (int i = 0; i < 8192; i++) numbers[i] = i % 251;
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    double sum = 0;
#pragma omp for
    for (int i = 0; i < 8192; i++) {
      sum += numbers[i];
      numbers[i] += me;
    }
    sums[me] = sum;
  }
  double total = 0, expected = 0;
  long added = 0;
  for (int i = 0; i < 4; i++) total += sums[i];
  for (int i = 0; i < 8192; i++) {
    expected += i % 251;
    added += numbers[i] - i % 251;
  }
  printf("%.0f %ld\n", total, added);
  expect(total == expected && added == 2048 * 6);
  return expect_result();
}
