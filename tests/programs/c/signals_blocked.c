// SPDX-License-Identifier: Apache-2.0
// Proves: threads that block all signals, for good or in a handler, still use files and wait for
// each other, on whichever node they are.
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "expect.h"

enum { kThreads = 4, kRounds = 10 };

static volatile int turn;
static volatile sig_atomic_t handled;

static void handle(int number) {
  handled += number == SIGUSR1;
  FILE *const file = tmpfile();
  expect(file != NULL && fprintf(file, "%d\n", number) > 0 && fclose(file) == 0);
}

static int block_all(void) {
  sigset_t all;
  sigfillset(&all);
  return pthread_sigmask(SIG_BLOCK, &all, NULL);
}

int main(void) {
  struct sigaction action = {.sa_handler = handle};
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  expect(handled == 1);
  for (int round = 0; round < kRounds; round++) {
    turn = 0;
#pragma omp parallel num_threads(kThreads)
    {
      const int me = omp_get_thread_num();
      expect(block_all() == 0);
      while (turn != me) {
      }
      FILE *const file = tmpfile();
      expect(file != NULL && fprintf(file, "%d\n", me) > 0 && fclose(file) == 0);
      turn = me + 1;
    }
    expect(turn == kThreads);
  }
  sigset_t before;
  expect(sigprocmask(SIG_SETMASK, NULL, &before) == 0 && sigismember(&before, SIGUSR1));
  puts("done");
  return expect_result();
}
