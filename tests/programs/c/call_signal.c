// SPDX-License-Identifier: Apache-2.0
// Proves: a signal handler of the program runs in the serial part and in regions.
#include <omp.h>
#include <signal.h>

#include "expect.h"

static volatile sig_atomic_t handled;

static void handle(int number) { handled += number == SIGUSR1; }

int main(void) {
  struct sigaction action = {.sa_handler = handle};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  int value = handled;
#pragma omp parallel num_threads(4)
  {
#pragma omp master
    raise(SIGUSR1);
  }
  raise(SIGUSR1);
  printf("%d %d\n", value, (int)handled);
  expect(value == 1 && handled == 3);
  return expect_result();
}
