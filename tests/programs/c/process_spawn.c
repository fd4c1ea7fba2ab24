// SPDX-License-Identifier: Apache-2.0
// Proves: posix_spawn runs a command with the environment the program set.
#include <omp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "expect.h"

extern char** environ;

int main(void) {
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += 1;
  char text[16];
  snprintf(text, sizeof text, "%d", sum);
  setenv("THREADS_SEEN", text, 1);
  fflush(stdout);
  char* arguments[] = {"sh", "-c", "echo threads $THREADS_SEEN; exit 3", NULL};
  pid_t child = 0;
  expect(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0);
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  return expect_result();
}
