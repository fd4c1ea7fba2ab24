// SPDX-License-Identifier: Apache-2.0
// Proves: lines printed by all threads all arrive, none torn, whatever their order.
#include <omp.h>
#include <stdio.h>

int main(void) {
  printf("before\n");
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 25; i++)
    printf("thread %d line %d of a text that is long enough to tear, if it could: %032d\n",
           omp_get_thread_num(), i, i * 12345);
  printf("after\n");
#pragma omp parallel num_threads(4)
  {
    puts("puts");
    fputs("fputs\n", stdout);
  }
  printf("no newline at the end");
  return 0;
}
