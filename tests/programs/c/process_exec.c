// SPDX-License-Identifier: Apache-2.0
// Proves: exec after regions replaces the program, and its output and exit code are the new one's.
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  printf("%d\n", sum);
  fflush(stdout);
  execl("/bin/sh", "sh", "-c", "echo replaced; exit 5", (char*)NULL);
  return 1;
}
