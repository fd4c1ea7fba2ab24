/* SPDX-License-Identifier: Apache-2.0
 * A recurrence over a grid by one doacross loop, whose single iterations threads have one after the
 * other: each waits for one of another thread. */
#include <stdio.h>
#include <stdlib.h>

enum { kColumns = 500 };

int main(int argc, char** argv) {
  const int rows = argc > 1 ? atoi(argv[1]) : 3;
  double(*grid)[kColumns] = calloc((size_t)rows, sizeof *grid);
  if (grid == NULL) return 1;
  for (int row = 0; row < rows; ++row) grid[row][0] = row % 10;
  for (int column = 0; column < kColumns; ++column) grid[0][column] = column % 7;
#pragma omp parallel for collapse(2) ordered(2) schedule(static, 1)
  for (int row = 1; row < rows; ++row) {
    for (int column = 1; column < kColumns; ++column) {
#pragma omp ordered depend(sink : row - 1, column) depend(sink : row, column - 1)
      grid[row][column] = 0.5 * (grid[row - 1][column] + grid[row][column - 1]);
#pragma omp ordered depend(source)
    }
  }
  double sum = 0;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < kColumns; ++column) sum += grid[row][column];
  }
  printf("%d rows: %.9g\n", rows, sum);
  free(grid);
  return 0;
}
