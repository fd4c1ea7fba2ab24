// SPDX-License-Identifier: Apache-2.0
// Proves: a large zeroed array of which threads write whole rows is read back whole.
#include <omp.h>

#include "expect.h"

enum { kRows = 256, kColumns = 1024 };
static int matrix[kRows][kColumns];

int main(void) {
#pragma omp parallel for num_threads(4)
  for (int row = 0; row < kRows; row++)
    for (int column = 0; column < kColumns; column++) matrix[row][column] = row * column % 1009;
  long sum = 0, expected = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int row = kRows - 1; row >= 0; row--)
    for (int column = 0; column < kColumns; column++) sum += matrix[row][column];
  for (int row = 0; row < kRows; row++)
    for (int column = 0; column < kColumns; column++) expected += row * column % 1009;
  printf("%ld\n", sum);
  expect(sum == expected);
  return expect_result();
}
