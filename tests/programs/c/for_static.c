// SPDX-License-Identifier: Apache-2.0
// Proves: static chunks go to the thread the standard names; unchunked shares are contiguous and
// repeat.
#include <omp.h>

#include "expect.h"

enum { kCount = 103 };

int main(void) {
  int chunked[kCount], plain[kCount], again[kCount];
#pragma omp parallel num_threads(4)
  {
#pragma omp for schedule(static, 5)
    for (int i = 0; i < kCount; i++) chunked[i] = omp_get_thread_num();
#pragma omp for schedule(static)
    for (int i = 0; i < kCount; i++) plain[i] = omp_get_thread_num();
#pragma omp for schedule(static)
    for (int i = 0; i < kCount; i++) again[i] = omp_get_thread_num();
  }
  for (int i = 0; i < kCount; i++) {
    expect(chunked[i] == i / 5 % 4);
    expect(plain[i] == again[i]);
    expect(i == 0 || plain[i] == plain[i - 1] || plain[i] > plain[i - 1]);
    printf("%d%c", chunked[i], i % 40 == 39 ? '\n' : ' ');
  }
  printf("\n");
  return expect_result();
}
