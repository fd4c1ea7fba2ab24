// SPDX-License-Identifier: Apache-2.0
// Proves: a nest lock is taken again by its owner, counts, and excludes the others.
#include <omp.h>

#include "expect.h"

static omp_nest_lock_t lock;
static int counter;

static void add(int depth) {
  omp_set_nest_lock(&lock);
  counter++;
  if (depth > 1) add(depth - 1);
  omp_unset_nest_lock(&lock);
}

int main(void) {
  omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(4)
  {
    for (int round = 0; round < 8; round++) add(3);
    omp_set_nest_lock(&lock);
    int depth = omp_test_nest_lock(&lock);
    expect(depth == 2);
    omp_unset_nest_lock(&lock);
    omp_unset_nest_lock(&lock);
  }
  omp_destroy_nest_lock(&lock);
  printf("%d\n", counter);
  expect(counter == 96);
  return expect_result();
}
