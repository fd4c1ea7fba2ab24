// SPDX-License-Identifier: Apache-2.0
// Proves: the value main returns is the exit code, and unflushed output is not lost.
#include <omp.h>
#include <stdio.h>

int main(void) {
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  printf("sum %d without a newline", sum);
  return 40 + sum;
}
