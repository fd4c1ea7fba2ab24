// SPDX-License-Identifier: Apache-2.0
// Proves: lines printed in ordered regions come out in order, whichever node printed them.
#include <omp.h>
#include <stdio.h>

int main(void) {
#pragma omp parallel for num_threads(4) ordered schedule(static, 1)
  for (int i = 0; i < 24; i++) {
    int square = i * i;
#pragma omp ordered
    {
      printf("%d squared is %d\n", i, square);
      fflush(stdout);
    }
  }
  return 0;
}
