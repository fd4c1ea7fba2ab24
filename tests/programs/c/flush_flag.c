// SPDX-License-Identifier: Apache-2.0
// Proves: data written before a flushed flag is seen by the thread that waits for the flag.
#include <omp.h>
#include <sched.h>

#include "expect.h"

static int data[1024];
static volatile int ready, taken;

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(2)
  {
    for (int round = 1; round <= 20; round++) {
      if (omp_get_thread_num() == 0) {
        for (int i = 0; i < 1024; i += 64) data[i] = round + i;
#pragma omp flush
        ready = round;
#pragma omp flush
        while (taken != round) sched_yield();
      } else {
        while (ready != round) sched_yield();
#pragma omp flush
        for (int i = 0; i < 1024; i += 64) wrong += data[i] != round + i;
#pragma omp flush
        taken = round;
      }
    }
  }
  printf("%d\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
