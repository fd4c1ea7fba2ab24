// SPDX-License-Identifier: Apache-2.0
// Proves: aligned allocations are aligned on every thread, and usable size is at least what was
// asked.
#include <malloc.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  for (size_t alignment = 64; alignment <= 65536; alignment *= 4) {
    void* a = aligned_alloc(alignment, alignment * 2);
    void* b = NULL;
    wrong += posix_memalign(&b, alignment, 100) != 0;
    void* c = memalign(alignment, 17);
    wrong += (uintptr_t)a % alignment != 0 || (uintptr_t)b % alignment != 0;
    wrong += (uintptr_t)c % alignment != 0 || malloc_usable_size(b) < 100;
    memset(a, 1, 64);
    memset(b, 2, 100);
    free(a);
    free(b);
    free(c);
  }
  void* bad = NULL;
  expect(posix_memalign(&bad, 3, 100) != 0);
  void* page = valloc(10);
  expect((uintptr_t)page % 4096 == 0);
  free(page);
  free(NULL);
  printf("%d\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
