// SPDX-License-Identifier: Apache-2.0
// Proves: tasks that use critical sections and locks exclude those of other nodes.
#include <omp.h>

#include "expect.h"

int main(void) {
  int by_critical = 0, by_lock = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel num_threads(4)
  {
    for (int i = 0; i < 15; i++) {
#pragma omp task shared(by_critical, by_lock, lock)
      {
#pragma omp critical(tasks)
        by_critical++;
        omp_set_lock(&lock);
        by_lock++;
        omp_unset_lock(&lock);
      }
    }
  }
  omp_destroy_lock(&lock);
  printf("%d %d\n", by_critical, by_lock);
  expect(by_critical == 60 && by_lock == 60);
  return expect_result();
}
