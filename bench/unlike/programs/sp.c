// SPDX-License-Identifier: Apache-2.0
// Shares badly: implicit steps along x, then y, then z (the pattern of the NAS benchmarks SP and
// BT). The loops of x and y are shared by planes of z, that of z by lines of y, whose rows are
// smaller than a page: every step moves the grid to and fro, and pages have several writers.
// sp [cells along an edge [steps]]
#include <math.h>

#include "program.h"

enum { kParts = 5, kMostCells = 256 };

typedef struct {
  double part[kParts];
} Cell;

// (1 + 2s) u[i] - s (u[i-1] + u[i+1]) = u_old[i] along one line of cells that are stride apart:
// elimination forwards, then backwards. The weight s differs from part to part.
static void solve_line(Cell* line, long cells, long stride) {
  double carried[kMostCells];
  for (int part = 0; part < kParts; part++) {
    double s = 0.1 * (part + 1), before = 0;
    for (long i = 0; i < cells; i++) {
      double* u = &line[i * stride].part[part];
      double pivot = 1 / (1 + 2 * s - s * (i != 0 ? carried[i - 1] : 0));
      carried[i] = s * pivot;
      before = *u = (*u + s * before) * pivot;
    }
    for (long i = cells - 2; i >= 0; i--)
      line[i * stride].part[part] += carried[i] * line[(i + 1) * stride].part[part];
  }
}

static void add_source(Cell* grid, long n, double amount) {
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long z = 0; z < n; z++)
    for (long i = z * n * n; i < (z + 1) * n * n; i++)
      for (int part = 0; part < kParts; part++)
        grid[i].part[part] += amount * (double)((i + part) % 17);
}

static void step_once(Cell* grid, long n) {
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long z = 0; z < n; z++)
    for (long y = 0; y < n; y++) solve_line(&grid[(z * n + y) * n], n, 1);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long z = 0; z < n; z++)
    for (long x = 0; x < n; x++) solve_line(&grid[z * n * n + x], n, n);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long y = 0; y < n; y++)
    for (long x = 0; x < n; x++) solve_line(&grid[y * n + x], n, n * n);
}

int main(int argc, char** argv) {
  long n = argument(argc, argv, 1, "cells along an edge", 40, 2, kMostCells);
  long steps = argument(argc, argv, 2, "steps", 200, 1, 1 << 20);
  Cell* grid = allocate((size_t)(n * n * n), sizeof *grid);
  for (long i = 0; i < n * n * n; i++)
    for (int part = 0; part < kParts; part++)
      grid[i].part[part] = uniform((uint64_t)(i * kParts + part));
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
    add_source(grid, n, 1e-3);
    step_once(grid, n);
  }
  steps_end(&timing);
  double checksum = 0;
  for (long i = 0; i < n * n * n; i++)
    for (int part = 0; part < kParts; part++)
      checksum += (part + 1) * grid[i].part[part];
  free(grid);
  return report("sp", checksum, kExact, &timing);
}
