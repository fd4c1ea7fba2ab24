/* SPDX-License-Identifier: Apache-2.0 */
/* One parallel region, run ten times, with work that every node can do by itself. */
#include <stdio.h>

static double weigh(long item) {
  double value = (double)item;
  for (int i = 0; i < 2000; i++) value = value * 0.5 + (double)item * 0.5;
  return value;
}

int main(void) {
  double sum = 0;
  for (int run = 0; run < 10; run++) {
    sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long item = 0; item < 1000; item++) sum += weigh(item);
  }
  printf("%.0f\n", sum);
  return 0;
}
