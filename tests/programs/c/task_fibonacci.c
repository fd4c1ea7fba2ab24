// SPDX-License-Identifier: Apache-2.0
// Proves: recursive tasks with taskwait give the right number.
#include <omp.h>

#include "expect.h"

static int fibonacci(int n) {
  if (n < 2) return n;
  int a, b;
#pragma omp task shared(a) if (n > 6)
  a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 6)
  b = fibonacci(n - 2);
#pragma omp taskwait
  return a + b;
}

int main(void) {
  int result = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  result = fibonacci(14);
  printf("%d\n", result);
  expect(result == 377);
  return expect_result();
}
