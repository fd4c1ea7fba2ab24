// SPDX-License-Identifier: Apache-2.0
// Proves: a forked child that does no OpenMP works or is refused, before and after regions; the
// parent goes on.
#include <omp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static int shared_counter = 5;

// The child changes its own copies only, and tells through its exit code what it saw.
static int child_saw(int add) {
  int local = 3;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    local += add;
    shared_counter += local;
    _exit(shared_counter);
  }
  expect(child > 0);
  int status = 0;
  expect(waitpid(child, &status, 0) == child);
  expect(WIFEXITED(status));
  expect(local == 3);
  return WEXITSTATUS(status);
}

int main(void) {
  expect(child_saw(2) == 10 && shared_counter == 5);
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  {
    sum += omp_get_thread_num();
#pragma omp atomic
    shared_counter++;
  }
  expect(child_saw(10) == 22 && shared_counter == 9);
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  printf("%d %d\n", sum, shared_counter);
  expect(sum == 12);
  return expect_result();
}
