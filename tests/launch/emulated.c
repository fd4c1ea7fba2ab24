/* SPDX-License-Identifier: Apache-2.0 */
/* A program for nodes of different speed.
   work: loops of each kind, whose results do not depend on who does what.
   shares S…: thread i uses 60 ms of CPU time and says so if it had more than S[i] of its core. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kSize = 40000, kMost = 64 };
static double values[kSize];

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int work(void) {
  long sum = 0, largest = 0, count = 0;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int i = 0; i < kSize; ++i) values[i] = i * 0.5;
#pragma omp for schedule(dynamic, 100) reduction(+ : sum)
    for (int i = 0; i < kSize; ++i) sum += (long)(values[i] * 2) % 1000;
#pragma omp for schedule(guided) reduction(max : largest)
    for (int i = 0; i < kSize; ++i) largest = largest < i * 7 % 9973 ? i * 7 % 9973 : largest;
    for (int round = 0; round < 20; ++round) {
#pragma omp critical
      ++count;
#pragma omp barrier
    }
  }
  printf("%ld %ld %d\n", sum, largest, count % 20 == 0);
  return 0;
}

static int shares(int count, char** asked) {
  double used[kMost], elapsed[kMost];
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
    const double begin = seconds(CLOCK_MONOTONIC), before = seconds(CLOCK_THREAD_CPUTIME_ID);
    double now = before;
    while (now - before < 0.06) now = seconds(CLOCK_THREAD_CPUTIME_ID);
    used[me] = now - before;
    elapsed[me] = seconds(CLOCK_MONOTONIC) - begin;
    if (me == 0 && omp_get_num_threads() < count) printf("%d threads\n", omp_get_num_threads());
  }
  for (int i = 0; i < count; ++i) {
    const double most = atof(asked[i]) * elapsed[i] + 0.01; /* saved up, or overrun */
    if (used[i] > most) printf("thread %d used %g s of %g s\n", i, used[i], elapsed[i]);
  }
  printf("%d processors\n", omp_get_num_procs());
  return 0;
}

int main(int count, char** arguments) {
  if (count > 2 && strcmp(arguments[1], "shares") == 0) return shares(count - 2, arguments + 2);
  return work();
}
