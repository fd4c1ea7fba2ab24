/* SPDX-License-Identifier: Apache-2.0 */
/* One parallel region, run ten times or as often as the argument says, with work that every node
   can do by itself. */
#include <stdio.h>
#include <stdlib.h>

static double weigh(long item) {
  double value = (double)item;
  for (int i = 0; i < 2000; i++) value = value * 0.5 + (double)item * 0.5;
  return value;
}

int main(int argc, char** argv) {
  const int runs = argc > 1 ? atoi(argv[1]) : 10;
  double sum = 0;
  for (int run = 0; run < runs; run++) {
    sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long item = 0; item < 1000; item++) sum += weigh(item);
  }
  printf("%.0f\n", sum);
  return 0;
}
