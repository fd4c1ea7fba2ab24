// SPDX-License-Identifier: Apache-2.0
// Proves: standard error and standard output of all threads stay apart.
#include <omp.h>
#include <stdio.h>

int main(void) {
#pragma omp parallel num_threads(4)
  {
    fprintf(stderr, "error of thread %d\n", omp_get_thread_num());
    fprintf(stdout, "output of thread %d\n", omp_get_thread_num());
  }
  fprintf(stderr, "last error\n");
  return 0;
}
