// SPDX-License-Identifier: Apache-2.0
// Question: what do neighbours that exchange their borders cost? Two grids of 2048 x 2048 doubles,
// relaxed by turns; each sweep moves two rows (eight pages) between the nodes, after the first
// two sweeps have fetched a node's half of both grids.
#include <omp.h>
#include <stdlib.h>

#include "verdict.h"

enum { kSide = 2048, kSweeps = 60 };

int main(void) {
  double(*from)[kSide] = calloc(kSide, sizeof *from);
  double(*to)[kSide] = calloc(kSide, sizeof *to);
  for (int i = 0; i < kSide; i++) {
    from[0][i] = to[0][i] = i % 10;
    from[i][0] = to[i][0] = i % 7;
  }
  double start = omp_get_wtime();
  for (int sweep = 0; sweep < kSweeps; sweep++) {
#pragma omp parallel for schedule(static)
    for (int i = 1; i < kSide - 1; i++)
      for (int j = 1; j < kSide - 1; j++)
        to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
    double(*last)[kSide] = from;
    from = to;
    to = last;
  }
  double seconds = omp_get_wtime() - start;
  // Each cell is computed alike whatever the number of threads, so the sum is the same to the bit.
  double sum = 0;
  for (int i = 0; i < kSide; i++)
    for (int j = 0; j < kSide; j++) sum += from[i][j] * (1 + (i * 31 + j) % 5);
  free(from);
  free(to);
  return verdict(seconds, sum, 228973.31275284255, 0);
}
