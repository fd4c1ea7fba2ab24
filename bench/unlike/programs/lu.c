// SPDX-License-Identifier: Apache-2.0
// Shares badly: right-looking factorisation of a dense matrix without pivots. A region for every
// column, each shorter than the one before, and every row is rewritten in each; rows are smaller
// than a page, so that neighbours on two nodes write to one.
// lu [rows [steps]]
#include <string.h>

#include "program.h"

static void factorise(double* a, long n) {
  for (long k = 0; k < n - 1; k++) {
    const double* pivot = &a[k * n];
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
    for (long i = k + 1; i < n; i++) {
      double* row = &a[i * n];
      double factor = row[k] /= pivot[k];
      for (long j = k + 1; j < n; j++) row[j] -= factor * pivot[j];
    }
  }
}

int main(int argc, char** argv) {
  long n = argument(argc, argv, 1, "rows", 400, 2, 1 << 14);
  long steps = argument(argc, argv, 2, "steps", 200, 1, 1 << 20);
  double* given = allocate((size_t)(n * n), sizeof *given);
  double* a = allocate((size_t)(n * n), sizeof *a);
  for (long i = 0; i < n * n; i++)
    given[i] = uniform((uint64_t)i) + (i % (n + 1) == 0 ? (double)n : 0);
  double checksum = 0;
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
    for (long i = 0; i < n; i++) {
      memcpy(&a[i * n], &given[i * n], (size_t)n * sizeof *a);
      a[i * n + i] += (double)step;
    }
    factorise(a, n);
    checksum += a[n * n - 1];
  }
  steps_end(&timing);
  for (long i = 0; i < n * n; i++) checksum += a[i];
  free(a);
  free(given);
  return report("lu", checksum, kExact, &timing);
}
