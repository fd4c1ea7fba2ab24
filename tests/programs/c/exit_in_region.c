// SPDX-License-Identifier: Apache-2.0
// Proves: exit() by a thread of a region ends the program with its exit code.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  printf("before\n");
  fflush(stdout);
#pragma omp parallel num_threads(4)
  {
    // The last thread is on the last node. The others wait for a barrier that never comes.
    if (omp_get_thread_num() == 3) _exit(23);
#pragma omp barrier
  }
  printf("never printed\n");
  return 0;
}
