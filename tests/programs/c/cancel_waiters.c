// SPDX-License-Identifier: Apache-2.0
// Proves: threads that only wait at cancellation points hear of a cancel, of the region and of a
// static loop; that of a dynamic loop and of sections ends those; what comes after in the region is
// whole, and so are reductions while cancellation is on. Many times over, so that news of one
// construct meets another.
#include <omp.h>

#include "expect.h"

enum { kRounds = 40, kThreads = 4, kLooks = 100000 };

// One thread cancels when all are there, the others wait to hear.
static int region(int canceller) {
  int there = 0, passed = 0;
#pragma omp parallel num_threads(kThreads)
  {
#pragma omp atomic
    there++;
    for (;;) {
      int all;
#pragma omp atomic read
      all = there;
      if (all == kThreads && omp_get_thread_num() == canceller) {
#pragma omp cancel parallel
      }
#pragma omp cancellation point parallel
    }
#pragma omp atomic
    passed++;
  }
  return there * 10 + passed;
}

// Where stock libomp is alone, a cancelled dynamic loop leaves behind how far it was handed out and
// how many threads came to its end; the team's loops in later regions go on from there, and may
// never end. So with clang every thread takes at most one chunk of it, and none that has one comes
// to its end. Who is to cancel it may get none, where its node has no part in the loop.
static int loops(int canceller) {
  int after = 0, late = 0;
#pragma omp parallel num_threads(kThreads)
  {
#pragma omp for schedule(static, 1)
    for (int i = 0; i < kThreads; i++) {
      if (i == canceller) {
#pragma omp cancel for
#pragma omp atomic
        late++;
      }
      for (;;) {
#pragma omp cancellation point for
      }
    }
#pragma omp for schedule(monotonic : dynamic, 3)
    for (int i = 0; i < 1000; i++) {
#ifdef __clang__
      for (int look = 0; omp_get_thread_num() != canceller && look < kLooks; look++) {
#pragma omp cancellation point for
      }
#pragma omp cancel for
#else
      if (i == 17 * canceller) {
#pragma omp cancel for
      }
#pragma omp cancellation point for
#endif
    }
#pragma omp for schedule(monotonic : dynamic, 3)
    for (int i = 0; i < 100; i++) {
#pragma omp cancellation point for
#pragma omp atomic
      after++;
    }
#pragma omp sections
    {
#pragma omp section
      {
#pragma omp cancellation point sections
      }
#pragma omp section
      {
#pragma omp cancel sections
#pragma omp atomic
        late++;
      }
    }
#pragma omp atomic
    after++;
  }
  return after * 10 + late;
}

static long sums(void) {
  long sum = 0, product = 0;
#pragma omp parallel num_threads(kThreads) reduction(+ : product)
  {
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < 1000; i++) sum += i;
    product += omp_get_thread_num() + sum;
  }
  return sum + product;
}

int main(void) {
  int bad = 0;
  for (int round = 0; round < kRounds; round++) {
    if (region(round % kThreads) != kThreads * 10) bad++;
    if (loops((round + 1) % kThreads) != (100 + kThreads) * 10) bad++;
    if (sums() != 499500L * (kThreads + 1) + kThreads * (kThreads - 1) / 2) bad++;
  }
  printf("cancellation %d: %d bad\n", omp_get_cancellation(), bad);
  expect(bad == 0);
  return expect_result();
}
