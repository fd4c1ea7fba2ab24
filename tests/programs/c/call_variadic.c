// SPDX-License-Identifier: Apache-2.0
// Proves: variadic functions of the program and of the library work on every thread.
#include <omp.h>
#include <stdarg.h>
#include <string.h>

#include "expect.h"

static double add_all(const char* kinds, ...) {
  va_list list;
  double sum = 0;
  va_start(list, kinds);
  for (; *kinds; kinds++)
    sum += *kinds == 'i' ? va_arg(list, int)
         : *kinds == 'l' ? (double)va_arg(list, long) : va_arg(list, double);
  va_end(list);
  return sum;
}

static void format(char* into, size_t size, const char* how, ...) {
  va_list list;
  va_start(list, how);
  vsnprintf(into, size, how, list);
  va_end(list);
}

int main(void) {
  double sums[4];
  char texts[4][64];
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    sums[me] = add_all("ildidliiddd", 1, 2L, 3.5, 4, 5.25, 6L, me, 8, 9.0, 10.0, 11.0);
    format(texts[me], sizeof texts[me], "%d %s %.2f %lx %c", me, "text", me * 1.5, 255L, 'z');
  }
  for (int i = 0; i < 4; i++) {
    puts(texts[i]);
    expect(sums[i] == 59.75 + i);
  }
  return expect_result();
}
