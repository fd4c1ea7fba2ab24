// SPDX-License-Identifier: Apache-2.0
// Proves: system() before, between and after regions runs commands and gives their exit codes.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "expect.h"

int main(void) {
  int sum = 0;
  fflush(stdout);
  expect(system("echo before") == 0);
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  int status = system("exit 9");
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 9);
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  expect(system("echo after; test -z \"\"") == 0);
  printf("%d\n", sum);
  expect(sum == 12);
  return expect_result();
}
