/* SPDX-License-Identifier: Apache-2.0
 * A recurrence over a grid whose columns are the threads' in strips: each row of a strip needs the
 * last column of the strip before, and threads tell each other by flags on which they spin. All of
 * it is one region without a barrier. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 400, kColumns = 600, kMostThreads = 64 };

static double grid[kRows][kColumns];
/* Up to which row of which sweep a thread has come, on a line of its own. */
static struct {
  int rows;
  char rest[60];
} done[kMostThreads];

static void await_rows(int thread, int rows) {
  for (;;) {
    int seen;
#pragma omp atomic read acquire
    seen = done[thread].rows;
    if (seen >= rows) break;
  }
}

static void sweep_strip(int first, int last, int thread, int threads, int sweep) {
  for (int row = 0; row < kRows; ++row) {
    if (thread > 0) await_rows(thread - 1, sweep * kRows + row + 1);
    /* What the next strip has yet to read of the sweep before. */
    if (thread + 1 < threads) await_rows(thread + 1, (sweep - 1) * kRows + row + 1);
    for (int column = first; column < last; ++column) {
      const double left = column > 0 ? grid[row][column - 1] : 1;
      const double above = row > 0 ? grid[row - 1][column] : 1;
      grid[row][column] = 0.5 * grid[row][column] + 0.25 * (left + above);
    }
#pragma omp atomic write release
    done[thread].rows = sweep * kRows + row + 1;
  }
}

int main(int argc, char** argv) {
  const int sweeps = argc > 1 ? atoi(argv[1]) : 4;
#pragma omp parallel
  {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    for (int sweep = 0; sweep < sweeps && threads <= kMostThreads; ++sweep) {
      sweep_strip(kColumns * thread / threads, kColumns * (thread + 1) / threads, thread, threads,
                  sweep);
    }
  }
  double sum = 0;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) sum += grid[row][column] * (row + column);
  }
  printf("%d sweeps: %.9g\n", sweeps, sum);
  return 0;
}
