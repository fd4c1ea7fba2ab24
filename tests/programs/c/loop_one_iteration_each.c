// SPDX-License-Identifier: Apache-2.0
// Proves: a static loop of as many iterations as threads gives each thread one, whatever the nodes'
// speeds and wherever the region runs, so that one thread's iteration may wait for another's.
#include <omp.h>

#include "expect.h"

enum { kThreads = 4, kRounds = 60 };

int main(void) {
  int wrong = 0;
  long sum = 0;
  for (int round = 0; round < kRounds; round++) {
    int come = 0;
#pragma omp parallel num_threads(kThreads) reduction(+ : wrong, sum)
    {
      int me = omp_get_thread_num();
#pragma omp for schedule(static) nowait
      for (int i = 0; i < kThreads; i++) {
        if (i != me) wrong++;
        sum += i;
#pragma omp atomic
        come++;
      }
#pragma omp for schedule(static)
      for (int i = 0; i < kThreads; i++) {
        int now;
        do {
#pragma omp atomic read
          now = come;
        } while (now < kThreads);
        sum += i * me;
      }
    }
  }
  printf("%ld %d\n", sum, wrong);
  expect(wrong == 0 && sum == kRounds * (6 + 14));
  return expect_result();
}
