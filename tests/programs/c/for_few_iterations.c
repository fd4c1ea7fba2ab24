// SPDX-License-Identifier: Apache-2.0
// Proves: loops of no, one and two iterations with four threads, in every schedule.
#include <omp.h>

#include "expect.h"

int main(void) {
  for (int count = 0; count < 6; count++) {
    int s = 0, d = 0, g = 0, c = 0;
#pragma omp parallel num_threads(4)
    {
#pragma omp for schedule(static) reduction(+ : s)
      for (int i = 0; i < count; i++) s += 1;
#pragma omp for schedule(dynamic) reduction(+ : d)
      for (int i = 0; i < count; i++) d += 1;
#pragma omp for schedule(guided, 3) reduction(+ : g)
      for (int i = 0; i < count; i++) g += 1;
#pragma omp for schedule(static, 2) reduction(+ : c)
      for (int i = 0; i < count; i++) c += 1;
    }
    printf("%d: %d %d %d %d\n", count, s, d, g, c);
    expect(s == count && d == count && g == count && c == count);
  }
  return expect_result();
}
