// SPDX-License-Identifier: Apache-2.0
// Proves: exit() by a thread of a region ends the program with its code while others go on to ask
// other nodes for something, and nothing is said on standard error.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  printf("before\n");
#pragma omp parallel num_threads(8)
  {
#pragma omp barrier
    // The last thread is on the last node. The first node's come to the next barrier meanwhile.
    if (omp_get_thread_num() == 7) exit(29);
    for (volatile long i = 0; i < 1000000; i++) {
    }
#pragma omp barrier
  }
  return 0;
}
