// SPDX-License-Identifier: Apache-2.0
// Proves: threads draw different numbers from rand, random and drand48's kin wherever they run,
// seeded or not; another seed makes all of them draw others; and the same seed makes a serial part
// draw what it has drawn before.
#define _GNU_SOURCE
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { kMostThreads = 64, kDraws = 4, kSets = 3 };

struct drawn {
  int threads;
  long numbers[2][kMostThreads * kDraws];  // of random, of lrand48
};

static void draw(struct drawn *drawn) {
  drawn->threads = omp_get_max_threads();
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
    for (int i = 0; i < kDraws; i++) {
      drawn->numbers[0][me * kDraws + i] = i % 2 == 0 ? random() : rand();
#pragma omp critical
      drawn->numbers[1][me * kDraws + i] = lrand48();  // has no lock of its own
    }
  }
}

static int by_value(const void *a, const void *b) {
  const long x = *(const long *)a, y = *(const long *)b;
  return (x > y) - (x < y);
}

// Of 31 bits each: with these seeds, and so few of them, no two are alike.
static int all_differ(const struct drawn *sets, int family) {
  static long all[kSets * kMostThreads * kDraws];
  size_t count = 0;
  for (int set = 0; set < kSets; set++) {
    const size_t some = (size_t)(sets[set].threads * kDraws);
    memcpy(all + count, sets[set].numbers[family], some * sizeof *all);
    count += some;
  }
  qsort(all, count, sizeof *all, by_value);
  for (size_t i = 1; i < count; i++) {
    if (all[i] == all[i - 1]) return 0;
  }
  return 1;
}

static void seed_all(unsigned seed) {
  srand(seed);
  srand48((long)seed);
}

int main(void) {
  static struct drawn sets[kSets];
  draw(&sets[0]);  // not seeded
  seed_all(7);
  const int first = rand();
  const long first48 = lrand48();
  draw(&sets[1]);
  unsigned short words[3] = {1, 2, 3};
  static char state[64];
  char *const before = initstate(11, state, sizeof state);
  expect(before != NULL);
  seed48(words);
  draw(&sets[2]);
  expect(setstate(before) == state);
  seed_all(7);
  expect(rand() == first);
  expect(lrand48() == first48);
  expect(all_differ(sets, 0));
  expect(all_differ(sets, 1));
  return expect_result();
}
