// SPDX-License-Identifier: Apache-2.0
// Proves: many locks in an array, initialised by many threads, each guard their own cell.
#include <omp.h>

#include "expect.h"

enum { kLocks = 32 };
static omp_lock_t locks[kLocks];
static int cells[kLocks];

int main(void) {
#pragma omp parallel num_threads(4)
  {
#pragma omp for
    for (int i = 0; i < kLocks; i++) omp_init_lock(&locks[i]);
    int me = omp_get_thread_num();
    for (int round = 0; round < 40; round++) {
      int which = (me * 7 + round * 5) % kLocks;
      omp_set_lock(&locks[which]);
      cells[which]++;
      omp_unset_lock(&locks[which]);
    }
#pragma omp barrier
#pragma omp for
    for (int i = 0; i < kLocks; i++) omp_destroy_lock(&locks[i]);
  }
  int sum = 0;
  for (int i = 0; i < kLocks; i++) sum += cells[i];
  printf("%d\n", sum);
  expect(sum == 160);
  return expect_result();
}
