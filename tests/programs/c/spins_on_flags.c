// SPDX-License-Identifier: Apache-2.0
// Proves: threads that wait for each other by looking at memory, in several ways and without any
// call, go on once it is written, also where there are more of them than cores, and again where
// the same code has waited before.
#include <omp.h>

#include "expect.h"

enum { kMost = 256, kSteps = 12, kRegions = 6 };

static volatile int passed[kMost];
static int by_atomic[kMost], by_flush[kMost];
static volatile double levels[kMost];
static long sums[kMost];

static void wait_volatile(int thread, int step) {
  while (passed[thread] <= step) {
  }
}

static void wait_atomic(int thread, int step) {
  int seen;
  do {
#pragma omp atomic read seq_cst
    seen = by_atomic[thread];
  } while (seen <= step);
}

static void wait_flush(int thread, int step) {
  while (*(volatile int *)&by_flush[thread] <= step) {
#pragma omp flush
  }
}

static void wait_level(int thread, int step) {
  while (!(levels[thread] > step + 0.5)) {
  }
}

// A line of threads, each of which does a step once the one before it has.
static void line(int region) {
  int size = 0;
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
    if (me == 0) size = omp_get_num_threads();
    for (int step = 0; step < kSteps; step++) {
      if (me > 0) {
        switch ((region + step) % 4) {
          case 0: wait_volatile(me - 1, step); break;
          case 1: wait_atomic(me - 1, step); break;
          case 2: wait_flush(me - 1, step); break;
          default: wait_level(me - 1, step); break;
        }
      }
      sums[me] = (me > 0 ? sums[me - 1] : 0) + step + 1;
#pragma omp flush
      passed[me] = step + 1;
      levels[me] = step + 1;
#pragma omp atomic write seq_cst
      by_atomic[me] = step + 1;
#pragma omp atomic write seq_cst
      by_flush[me] = step + 1;
      // The next one reads this step's sum before there is another.
      if (me + 1 < omp_get_num_threads()) wait_volatile(me + 1, step);
    }
#pragma omp barrier
    passed[me] = by_atomic[me] = by_flush[me] = 0;
    levels[me] = 0;
  }
  expect(size > 0 && size <= kMost);
  for (int thread = 0; thread < size; thread++) expect(sums[thread] == (thread + 1) * kSteps);
}

int main(void) {
  for (int region = 0; region < kRegions; region++) line(region);
  printf("%d regions\n", kRegions);
  return expect_result();
}
