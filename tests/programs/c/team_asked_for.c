// SPDX-License-Identifier: Apache-2.0
// Proves: a program that says how large its teams are finds them so, in loops that are too brief to
// be shared as well, whichever threads of the system execute these; and threads that wait for each
// other in a loop are all there.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "expect.h"

enum { kThreads = 4, kCount = 203, kRounds = 400, kBrief = 20 };

static int number_of[kCount], size_of[kCount], level_of[kCount], parent_of[kCount];
static double values[kCount];
static int stage;

__attribute__((noinline)) static void note(int i) {
  number_of[i] = omp_get_thread_num();
  size_of[i] = omp_get_num_threads();
  level_of[i] = omp_get_level() * 100 + omp_get_active_level() * 10 + omp_in_parallel();
  parent_of[i] = omp_get_ancestor_thread_num(1) * 10 + omp_get_team_size(1);
}

static void who_asks(void) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < kCount; i++) note(i);
  for (int i = 0; i < kCount; i++) {
    expect(number_of[i] >= 0 && number_of[i] < kThreads && size_of[i] == kThreads);
    expect(level_of[i] == 111 && parent_of[i] == number_of[i] * 10 + kThreads);
  }
}

static void who_does_not(int round) {
#pragma omp parallel for
  for (int i = 0; i < kCount; i++) values[i] += i;
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < kCount; i++) sum += values[i];
  expect(sum == (double)round * kCount * (kCount - 1) / 2);
}

// Iterations of all threads wait for each other: each thread's first one of `each`. It ends when
// the last one has begun.
static void who_waits(int each) {
  stage = 0;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < kThreads * each; i++) {
    if (i % each != 0) continue;
    __atomic_add_fetch(&stage, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) < kThreads) continue;
  }
  expect(stage == kThreads);
}

int main(void) {
  omp_set_num_threads(kThreads);
  struct rusage before, after;
  for (int round = 1; round <= 2 * kRounds; round++) {
    if (round == kRounds) getrusage(RUSAGE_SELF, &before);
    who_does_not(round);
  }
  getrusage(RUSAGE_SELF, &after);
  const long waits = after.ru_nvcsw - before.ru_nvcsw;
  if (getenv("TELL_WAITS") != NULL) printf("%ld waits in %d regions\n", waits, 2 * kRounds);
  for (int round = 0; round < kRounds; round++) who_asks();
  for (int round = 0; round < 2; round++) who_waits(100);
  for (int round = 0; round < kBrief; round++) who_waits(1);
  return expect_result();
}
