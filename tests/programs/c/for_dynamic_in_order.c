// SPDX-License-Identifier: Apache-2.0
// Proves: each thread of a monotonic dynamic loop sees its chunks in rising order, and chunks are
// whole.
#include <omp.h>

#include "expect.h"

enum { kCount = 600, kChunk = 4 };
static int owner[kCount];

int main(void) {
#pragma omp parallel num_threads(4)
  {
    int last = -1;
#pragma omp for schedule(monotonic : dynamic, kChunk)
    for (int i = 0; i < kCount; i++) {
      expect(i > last);
      last = i;
      owner[i] = omp_get_thread_num();
    }
  }
  for (int i = 0; i < kCount; i++) expect(owner[i] == owner[i / kChunk * kChunk]);
  return expect_result();
}
