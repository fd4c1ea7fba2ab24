// SPDX-License-Identifier: Apache-2.0
// Proves: output of serial parts and of regions is in program order where barriers order it.
#include <omp.h>
#include <stdio.h>

int main(void) {
  for (int round = 0; round < 3; round++) {
    printf("serial %d\n", round);
    fflush(stdout);
#pragma omp parallel num_threads(4)
    for (int turn = 0; turn < 4; turn++) {
      if (turn == omp_get_thread_num()) {
        printf("round %d thread %d\n", round, turn);
        fflush(stdout);
      }
#pragma omp barrier
    }
  }
  return 0;
}
