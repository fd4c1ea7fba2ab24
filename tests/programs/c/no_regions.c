// SPDX-License-Identifier: Apache-2.0
// Proves: a program that is linked to OpenMP, but forks no region, runs as it is.
#include <omp.h>
#include <stdio.h>

int main(void) {
  printf("%d\n", omp_get_num_threads());
  return 0;
}
