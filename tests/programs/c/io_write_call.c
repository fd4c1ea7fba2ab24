// SPDX-License-Identifier: Apache-2.0
// Proves: write(2) to standard output from any thread arrives, in the order of barriers.
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
#pragma omp parallel num_threads(4)
  for (int turn = 0; turn < 4; turn++) {
    if (turn == omp_get_thread_num()) {
      char text[40];
      int length = snprintf(text, sizeof text, "written by %d\n", turn);
      if (write(STDOUT_FILENO, text, (size_t)length) != length) _exit(9);
    }
#pragma omp barrier
  }
  return 0;
}
