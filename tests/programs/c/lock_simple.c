// SPDX-License-Identifier: Apache-2.0
// Proves: a simple lock excludes; omp_test_lock tells whether it was taken.
#include <omp.h>
#include <sched.h>

#include "expect.h"

int main(void) {
  omp_lock_t lock;
  int counter = 0, inside = 0, overlaps = 0;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 20; round++) {
    if (round % 2) {
      omp_set_lock(&lock);
    } else {
      while (!omp_test_lock(&lock)) sched_yield();
    }
    overlaps += inside++ != 0;
    counter++;
    inside--;
    omp_unset_lock(&lock);
  }
  omp_set_lock(&lock);
  int refused = 0;
#pragma omp parallel num_threads(4) reduction(+ : refused)
  if (omp_get_thread_num() != 0) refused += !omp_test_lock(&lock);
  omp_unset_lock(&lock);
  omp_destroy_lock(&lock);
  printf("%d %d %d\n", counter, overlaps, refused);
  expect(counter == 80 && overlaps == 0 && refused == 3);
  return expect_result();
}
