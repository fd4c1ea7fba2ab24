// SPDX-License-Identifier: Apache-2.0
// Proves: a wild pointer after regions ends the program by signal 11, not by a hang.
#include <omp.h>
#include <stdio.h>
#include <sys/resource.h>

static int* volatile wild = (int*)16;

int main(void) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  printf("%d\n", sum);
  fflush(stdout);
  return *wild;
}
