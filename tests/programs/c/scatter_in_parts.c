// SPDX-License-Identifier: Apache-2.0
// Adds at places all over an array, as scatter_once.c does, in regions that are only a static
// loop: it may be handed out in parts, for each of which a thread enters the region's function
// again, and threads may go on elsewhere in any of these.
// scatter_in_parts [plain|sum|both [additions]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPlaces = 1 << 20 };

static unsigned counts[kPlaces];

static unsigned long place_of(unsigned long i) {
  unsigned long place = i * 0x9e3779b97f4a7c15ul;
  place ^= place >> 29;
  place *= 0xbf58476d1ce4e5b9ul;
  return (place >> 20) % kPlaces;
}

// Each addition once: their places say which.
static int is_as_expected(long additions, unsigned each) {
  static unsigned expected[kPlaces];
  memset(expected, 0, sizeof expected);
  for (long i = 0; i < additions; ++i) expected[place_of(i)] += each;
  return memcmp(expected, counts, sizeof counts) == 0;
}

int main(int argc, char** argv) {
  const char* const regions = argc > 1 ? argv[1] : "both";
  const long additions = argc > 2 ? atol(argv[2]) : 300000;
  const int both = strcmp(regions, "both") == 0;
  unsigned each = 0;
  if (both || strcmp(regions, "plain") == 0) {
#pragma omp parallel for
    for (long i = 0; i < additions; ++i) {
      __atomic_fetch_add(&counts[place_of(i)], 1, __ATOMIC_RELAXED);
    }
    ++each;
  }
  unsigned long mixed = 0, expected = 0;
  double weight = 0;
  if (both || strcmp(regions, "sum") == 0) {
#pragma omp parallel for reduction(+ : mixed, weight)
    for (long i = 0; i < additions; ++i) {
      const unsigned long place = place_of(i);
      __atomic_fetch_add(&counts[place], 1, __ATOMIC_RELAXED);
      mixed += place ^ (unsigned long)i;
      weight += 0.25 * (double)(place % 8);
    }
    ++each;
    for (long i = 0; i < additions; ++i) expected += place_of(i) ^ (unsigned long)i;
  }
  printf("%ld additions, %lu %.2f\n", additions, mixed, weight);
  if (mixed != expected || !is_as_expected(additions, each)) {
    printf("NOT as expected\n");
    return 1;
  }
  return 0;
}
