// SPDX-License-Identifier: Apache-2.0
// Proves: a region that is not worth sharing has as many threads as omp_get_max_threads() says,
// where threads leave something behind by their numbers, also in one whose static loop asks for it.
#include <omp.h>

#include "expect.h"

enum { kItems = 3000, kRounds = 300, kMostThreads = 256 };

static double values[kItems];
static double least[kMostThreads];

static void find_least(void) {
#pragma omp parallel
  {
    int me = omp_get_thread_num();
    double mine = 1e30;
#pragma omp for nowait
    for (int i = 0; i < kItems; i++) {
      if (values[i] < mine) mine = values[i];
    }
    least[me] = mine;
  }
}

// gcc asks once for the number, whether the program does so before or after its loop.
static void find_least_asking_late(void) {
#pragma omp parallel
  {
    double mine = 1e30;
#pragma omp for nowait
    for (int i = 0; i < kItems; i++) {
      if (values[i] < mine) mine = values[i];
    }
    least[omp_get_thread_num()] = mine;
  }
}

// The size alone is asked for.
static int team_size(void) {
  int size = 0;
#pragma omp parallel
  {
#pragma omp for
    for (int i = 0; i < kItems; i++) values[i] += 1;
#pragma omp master
    size = omp_get_num_threads();
  }
  return size;
}

int main(void) {
  int threads = omp_get_max_threads();
  expect(threads <= kMostThreads);
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < kItems; i++) values[i] = 2 * kItems + (i * 7 + round) % kItems;
    for (int t = 0; t < threads; t++) least[t] = 0;
    if (round % 2 == 0) {
      find_least();
    } else {
      find_least_asking_late();
    }
    double of_all = 1e30;
    for (int t = 0; t < threads; t++) {
      if (least[t] < of_all) of_all = least[t];
    }
    expect(of_all == 2 * kItems);
    expect(team_size() == threads);
  }
  return expect_result();
}
