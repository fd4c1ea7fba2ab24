// SPDX-License-Identifier: Apache-2.0
// Proves: deep recursion on every thread, with 512 KiB of stack each, and on main before and after.
#include <omp.h>

#include "expect.h"

static long descend(int depth, long value) {
  volatile char frame[900];
  frame[depth % 900] = (char)depth;
  if (depth == 0) return value;
  long below = descend(depth - 1, value + depth);
  return below + (frame[depth % 900] == (char)depth ? 0 : 1000000);
}

int main(void) {
  long results[4];
  long before = descend(2000, 0);
#pragma omp parallel num_threads(4)
  results[omp_get_thread_num()] = descend(512, omp_get_thread_num());
  long after = descend(2000, 0);
  printf("%ld %ld\n", before, after);
  expect(before == 2001000 && after == before);
  for (int i = 0; i < 4; i++) expect(results[i] == 512 * 513 / 2 + i);
  return expect_result();
}
