// SPDX-License-Identifier: Apache-2.0
// Proves: setuid and its kind end, though the C library waits for all threads of the process there;
// where nothing changes they succeed, before, between and after regions.
#define _GNU_SOURCE
#include <omp.h>
#include <unistd.h>

#include "expect.h"

static int count_threads(void) {
  int threads = 0;
#pragma omp parallel num_threads(4) reduction(+ : threads)
  threads += 1;
  return threads;
}

int main(void) {
  expect(setgid(getgid()) == 0);
  expect(count_threads() == 4);
  expect(setuid(getuid()) == 0 && seteuid(geteuid()) == 0 && setegid(getegid()) == 0);
  expect(setreuid(getuid(), geteuid()) == 0 && setregid(getgid(), getegid()) == 0);
  expect(count_threads() == 4);
  expect(setresuid(getuid(), geteuid(), geteuid()) == 0);
  expect(setresgid(getgid(), getegid(), getegid()) == 0);
  printf("%d threads\n", count_threads());
  return expect_result();
}
