/* SPDX-License-Identifier: Apache-2.0 */
/* A loop whose schedule is chosen when it runs, ten times. */
#include <stdio.h>

int main(void) {
  long sum = 0;
  for (int run = 0; run < 10; run++) {
    sum = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
    for (long item = 0; item < 1000; item++) sum += item;
  }
  printf("%ld\n", sum);
  return 0;
}
