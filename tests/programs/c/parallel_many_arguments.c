// SPDX-License-Identifier: Apache-2.0
// Proves: a region may capture more variables than any fixed argument count, of every type.
#include <omp.h>
#include <stdint.h>

#include "expect.h"

struct Pair {
  double first;
  char text[12];
};

int main(void) {
  int8_t a = 1;
  uint16_t b = 2;
  int c = 3;
  long d = 4;
  float e = 5.5f;
  double f = 6.25;
  long double g = 7.125L;
  char h = 'h';
  struct Pair i = {9.5, "nine"};
  int j[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const char* k = "eleven";
  unsigned long long l = 1ull << 60;
  int m = 13, n = 14, o = 15, p = 16, q = 17, r = 18, s = 19, t = 20;
  double sums[4] = {0};
#pragma omp parallel num_threads(4) firstprivate(a, c, e, g, i, j, l, q) \
    shared(b, d, f, h, k, m, n, o, p, r, s, t, sums)
  {
    a += 1;
    i.first += omp_get_thread_num();
    j[0] = omp_get_thread_num();
    double all = a + b + c + (double)d + e + f + (double)g + h + i.first + i.text[0] + j[0] + j[9];
    all += k[0] + (double)(l >> 58) + m + n + o + p + q + r + s + t;
    sums[omp_get_thread_num()] = all;
  }
  for (int thread = 0; thread < 4; thread++) {
    expect(sums[thread] == sums[0] + 2 * thread);
    printf("%d: %.3f\n", thread, sums[thread]);
  }
  expect(a == 1 && i.first == 9.5 && j[0] == 0);
  return expect_result();
}
