// SPDX-License-Identifier: Apache-2.0
// Proves: a program that says how large its teams are finds them so, in loops that are too short to
// be shared as well: whichever threads of the system stand for them.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "expect.h"

enum { kThreads = 4, kCount = 203, kRounds = 400 };

static int number_of[kCount], size_of[kCount], level_of[kCount], parent_of[kCount];
static int nested_of[kCount];
static long system_thread_of[kCount];

__attribute__((noinline)) static void note(int i, int with_nested) {
  number_of[i] = omp_get_thread_num();
  size_of[i] = omp_get_num_threads();
  level_of[i] = omp_get_level() * 100 + omp_get_active_level() * 10 + omp_in_parallel();
  parent_of[i] = omp_get_ancestor_thread_num(1) * 10 + omp_get_team_size(1);
  system_thread_of[i] = syscall(SYS_gettid);
  if (!with_nested) return;
#pragma omp parallel
  {
#pragma omp single
    nested_of[i] = omp_get_num_threads() * 10 + omp_get_ancestor_thread_num(1);
  }
}

static int execute(int with_nested) {
  memset(number_of, -1, sizeof number_of);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < kCount; i++) note(i, with_nested);
  long first = system_thread_of[0];
  int others = 0;
  for (int i = 0; i < kCount; i++) {
    expect(number_of[i] >= 0 && number_of[i] < kThreads && size_of[i] == kThreads);
    expect(level_of[i] == 111 && parent_of[i] == number_of[i] * 10 + kThreads);
    if (with_nested) expect(nested_of[i] == 10 + number_of[i]);
    others += system_thread_of[i] != first;
  }
  return others > 0;
}

int main(void) {
  omp_set_num_threads(kThreads);
  omp_set_max_active_levels(1);
  int of_one = 0;
  for (int round = 0; round < kRounds; round++) of_one += !execute(0);
  for (int round = 0; round < 20; round++) execute(1);
  double sum = 0;
  for (int round = 0; round < 20; round++) {
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < kCount; i++) sum += i;
  }
  expect(sum == 20.0 * kCount * (kCount - 1) / 2);
  if (getenv("TELL_OF_ONE") != NULL) printf("%d of %d by one thread\n", of_one, kRounds);
  return expect_result();
}
