// SPDX-License-Identifier: Apache-2.0
// Proves: abort() after regions ends the program by signal 6.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(void) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  printf("%d\n", sum);
  fflush(stdout);
  abort();
}
