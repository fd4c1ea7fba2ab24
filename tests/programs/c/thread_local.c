// SPDX-License-Identifier: Apache-2.0
// Proves: thread-local variables of the language belong to one thread on whichever node it is.
#include <omp.h>

#include "expect.h"

static __thread int calls = 3;
static __thread int* self;

int main(void) {
  int counts[4];
  for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(4)
    {
      calls += 1 + omp_get_thread_num();
      if (self == NULL) self = &calls;
      expect(self == &calls);
      counts[omp_get_thread_num()] = calls;
    }
  }
  for (int i = 0; i < 4; i++) {
    printf("%d\n", counts[i]);
    expect(counts[i] == 3 + 3 * (1 + i));
  }
  return expect_result();
}
