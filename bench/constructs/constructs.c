// SPDX-License-Identifier: Apache-2.0
// Question: what do an empty region, a barrier and a reduction cost on several nodes?
// Expected: a region and a reduction at most twice a message round trip between the nodes, a
// barrier no more than MPI_Barrier on as many processes (message_round_trips.c, run beside it).
// Held against: the same program under the plain runtime, and MPI.
//
// Prints one line a construct: name, microseconds of the median of 31 batches, and their median
// absolute deviation. A batch is long enough for the clock, short enough to repeat.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBatches = 31, kRepeats = 200 };

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

static void report(const char *name, double *microseconds) {
  const double middle = median(microseconds, kBatches);
  double deviation[kBatches];
  for (int i = 0; i < kBatches; ++i) {
    deviation[i] = microseconds[i] > middle ? microseconds[i] - middle : middle - microseconds[i];
  }
  printf("%-10s %10.3f %10.3f\n", name, middle, median(deviation, kBatches));
}

static double batch_of_regions(void) {
  const double start = omp_get_wtime();
  for (int i = 0; i < kRepeats; ++i) {
#pragma omp parallel
    __asm__ volatile("");
  }
  return omp_get_wtime() - start;
}

static double batch_of_barriers(void) {
  double elapsed = 0;
#pragma omp parallel
  {
#pragma omp barrier
    const double start = omp_get_wtime();
    for (int i = 0; i < kRepeats; ++i) {
#pragma omp barrier
    }
#pragma omp master
    elapsed = omp_get_wtime() - start;
  }
  return elapsed;
}

static double batch_of_reductions(void) {
  double sum = 0;
  const double start = omp_get_wtime();
  for (int i = 0; i < kRepeats; ++i) {
#pragma omp parallel reduction(+ : sum)
    sum += 1;
  }
  const double elapsed = omp_get_wtime() - start;
  if (sum != (double)kRepeats * omp_get_max_threads()) {
    fprintf(stderr, "the reductions give %g, not %d x %d\n", sum, kRepeats, omp_get_max_threads());
    exit(1);
  }
  return elapsed;
}

static void measure(const char *name, double (*batch)(void)) {
  double microseconds[kBatches];
  batch();  // warm: teams made, pages where they are used
  for (int i = 0; i < kBatches; ++i) microseconds[i] = batch() * 1e6 / kRepeats;
  report(name, microseconds);
}

int main(void) {
  measure("region", batch_of_regions);
  measure("barrier", batch_of_barriers);
  measure("reduction", batch_of_reductions);
  return 0;
}
