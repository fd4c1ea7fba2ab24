// SPDX-License-Identifier: Apache-2.0
// Proves: every thread of a region has its own number, and all see the same team size.
#include <omp.h>
#include <string.h>

#include "expect.h"

int main(void) {
  int seen[64], sizes[64];
  memset(seen, 0, sizeof seen);
  memset(sizes, 0, sizeof sizes);
#pragma omp parallel
  {
    int me = omp_get_thread_num();
    __atomic_add_fetch(&seen[me], 1, __ATOMIC_RELAXED);
    sizes[me] = omp_get_num_threads();
  }
  int count = 0;
  for (int i = 0; i < 64; i++) {
    expect(seen[i] == 0 || seen[i] == 1);
    count += seen[i];
  }
  for (int i = 0; i < count; i++) {
    expect(seen[i] == 1);
    expect(sizes[i] == count);
    printf("thread %d of %d\n", i, sizes[i]);
  }
  return expect_result();
}
