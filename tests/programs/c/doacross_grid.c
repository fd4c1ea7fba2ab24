// SPDX-License-Identifier: Apache-2.0
// Proves: a wave front over a grid by doacross loops of two dimensions.
#include <omp.h>

#include "expect.h"

enum { kRows = 12, kColumns = 14 };
static unsigned paths[kRows][kColumns], serial[kRows][kColumns];

int main(void) {
  for (int i = 0; i < kRows; i++) paths[i][0] = serial[i][0] = 1;
  for (int j = 0; j < kColumns; j++) paths[0][j] = serial[0][j] = 1;
#pragma omp parallel for num_threads(4) ordered(2) schedule(dynamic, 1)
  for (int i = 1; i < kRows; i++)
    for (int j = 1; j < kColumns; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
      paths[i][j] = paths[i - 1][j] + paths[i][j - 1];
#pragma omp ordered depend(source)
    }
  for (int i = 1; i < kRows; i++)
    for (int j = 1; j < kColumns; j++) {
      serial[i][j] = serial[i - 1][j] + serial[i][j - 1];
      expect(paths[i][j] == serial[i][j]);
    }
  printf("%u\n", paths[kRows - 1][kColumns - 1]);
  return expect_result();
}
