// SPDX-License-Identifier: Apache-2.0
// Proves: a test-and-set lock from compiler builtins, with yields, guards a counter.
#include <omp.h>
#include <sched.h>

#include "expect.h"

static char lock;
static int counter;

int main(void) {
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 15; round++) {
    while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {
      while (__atomic_load_n(&lock, __ATOMIC_RELAXED)) sched_yield();
    }
    counter++;
    __atomic_clear(&lock, __ATOMIC_RELEASE);
  }
  printf("%d\n", counter);
  expect(counter == 60);
  return expect_result();
}
