// SPDX-License-Identifier: Apache-2.0
// Proves: dynamic work of very uneven cost is summed right, with page-sized private rows.
#include <omp.h>

#include "expect.h"

static double rows[64][512];

int main(void) {
#pragma omp parallel for num_threads(4) schedule(dynamic)
  for (int row = 0; row < 64; row++) {
    for (int round = 0; round <= row; round++)
      for (int i = 0; i < 512; i++) rows[row][i] += (row + i) % 13;
  }
  double sum = 0;
  for (int row = 0; row < 64; row++) {
    double expected = 0, here = 0;
    for (int i = 0; i < 512; i++) {
      expected += (row + 1.0) * ((row + i) % 13);
      here += rows[row][i];
    }
    expect(here == expected);
    sum += here;
  }
  printf("%.0f\n", sum);
  return expect_result();
}
