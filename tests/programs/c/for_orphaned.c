// SPDX-License-Identifier: Apache-2.0
// Proves: a work-sharing loop in a function works from a region, from serial code and from if(0).
#include <omp.h>

#include "expect.h"

static long total;

static void add_range(int count) {
#pragma omp for schedule(static) reduction(+ : total)
  for (int i = 0; i < count; i++) total += i;
#pragma omp for schedule(dynamic, 4) reduction(+ : total)
  for (int i = 0; i < count; i++) total += i;
}

int main(void) {
  add_range(100);
  expect(total == 9900);
#pragma omp parallel num_threads(4)
  add_range(100);
  expect(total == 19800);
#pragma omp parallel num_threads(4) if (0)
  add_range(100);
  printf("%ld\n", total);
  expect(total == 29700);
  return expect_result();
}
