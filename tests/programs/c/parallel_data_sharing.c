// SPDX-License-Identifier: Apache-2.0
// Proves: private, firstprivate and shared variables are kept apart, with default(none).
#include <omp.h>

#include "expect.h"

static int file_scope = 100;

int main(void) {
  int a = 1, b = 2, c = 3, out[4] = {0}, apart = 0;
#pragma omp parallel num_threads(4) default(none) private(a) firstprivate(b) shared(c, out) \
    shared(file_scope, expect_failures, apart)
  {
    a = omp_get_thread_num();
    b += a;
#pragma omp barrier
    if (a != omp_get_thread_num() || b != 2 + a) {
#pragma omp atomic
      apart++;
    }
    out[a] = b * 1000 + c * 100 + file_scope;
  }
  for (int i = 0; i < 4; i++) {
    printf("%d\n", out[i]);
    expect(out[i] == (2 + i) * 1000 + 400);
  }
  expect(a == 1 && b == 2 && c == 3 && apart == 0);
  return expect_result();
}
