/* SPDX-License-Identifier: Apache-2.0
 * Counts in a few bins, each with a lock of its own: threads have a lock, or wait for one, nearly
 * all the time. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBins = 32 };

static omp_lock_t locks[kBins];
static long counts[kBins];

int main(int argc, char** argv) {
  const long numbers = argc > 1 ? atol(argv[1]) : 300;
  for (int bin = 0; bin < kBins; ++bin) omp_init_lock(&locks[bin]);
#pragma omp parallel for
  for (long i = 0; i < numbers; ++i) {
    const unsigned bin = (unsigned)((unsigned long)i * 2654435761u >> 8) % kBins;
    omp_set_lock(&locks[bin]);
    counts[bin] += 1 + i % 3;
    omp_unset_lock(&locks[bin]);
  }
  long sum = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    sum += counts[bin] * (bin + 1);
    omp_destroy_lock(&locks[bin]);
  }
  printf("%ld numbers: %ld\n", numbers, sum);
  return 0;
}
