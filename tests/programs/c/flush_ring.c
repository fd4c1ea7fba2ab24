// SPDX-License-Identifier: Apache-2.0
// Proves: a token goes round a ring of four threads by flags alone.
#include <omp.h>
#include <sched.h>

#include "expect.h"

enum { kThreads = 4, kRounds = 15 };
static struct {
  int turn;
  char pad[4092];
} slot[kThreads];
static int trace[kThreads * kRounds], length;

int main(void) {
  slot[0].turn = 1;
#pragma omp parallel num_threads(kThreads)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < kRounds; round++) {
      int mine = 0;
      while (!mine) {
#pragma omp atomic read acquire
        mine = slot[me].turn;
        if (!mine) sched_yield();
      }
      trace[length++] = me;
#pragma omp atomic write release
      slot[me].turn = 0;
#pragma omp atomic write release
      slot[(me + 1) % kThreads].turn = 1;
    }
  }
  for (int i = 0; i < length; i++) expect(trace[i] == i % kThreads);
  printf("%d\n", length);
  expect(length == kThreads * kRounds);
  return expect_result();
}
