// SPDX-License-Identifier: Apache-2.0
// Proves: ordered regions run in iteration order in static and dynamic loops.
#include <omp.h>

#include "expect.h"

enum { kCount = 60 };
static int order[kCount], length;

static void check_order(const char* what) {
  int wrong = 0;
  for (int i = 0; i < kCount; i++) wrong += order[i] != i;
  printf("%s: %d, %d wrong\n", what, length, wrong);
  expect(length == kCount && wrong == 0);
  length = 0;
}

int main(void) {
#pragma omp parallel for num_threads(4) ordered schedule(static, 3)
  for (int i = 0; i < kCount; i++) {
#pragma omp ordered
    order[length++] = i;
  }
  check_order("static, 3");
#pragma omp parallel for num_threads(4) ordered schedule(dynamic)
  for (int i = 0; i < kCount; i++) {
#pragma omp ordered
    order[length++] = i;
  }
  check_order("dynamic");
#pragma omp parallel for num_threads(4) ordered schedule(guided, 2)
  for (int i = 0; i < kCount; i++) {
#pragma omp ordered
    order[length++] = i;
  }
  check_order("guided");
#pragma omp parallel for num_threads(4) ordered
  for (int i = 0; i < kCount; i++) {
    if (i % 3 == 0) {
#pragma omp ordered
      order[length++] = i / 3;
    }
  }
  printf("%d\n", length);
  expect(length == kCount / 3);
  return expect_result();
}
