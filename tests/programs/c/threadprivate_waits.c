// SPDX-License-Identifier: Apache-2.0
// Proves: a region that leaves threadprivate variables alone may go on elsewhere in the middle of
// it, and its threads find them again in the regions that follow.
// threadprivate_waits [steps]
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

enum { kSteps = 40, kCells = 8192, kThreads = 4, kRounds = 3 };

static long visits;
static double sums[40];
static double* last;  // into them
#pragma omp threadprivate(visits, sums, last)

static double cells[kCells];
static int wrong[kThreads];

static void visit(int round) {
  const int me = omp_get_thread_num();
  if (round == 0) last = sums;
  wrong[me] += visits != round || last != sums + round;
  for (int i = 0; i < round; ++i) wrong[me] += sums[i] != me + i;
  *last++ = me + round;
  ++visits;
}

// Each page has cells of all threads, which wait for one another.
static void relax(int step) {
#pragma omp for schedule(static, 1)
  for (int i = 0; i < kCells; ++i) cells[i] += (i % 7) + step % 3;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : kSteps;
  double total = 0;
  omp_set_dynamic(0);
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(kThreads)
    visit(round);
#pragma omp parallel num_threads(kThreads)
    for (int step = 0; step < steps; ++step) relax(step);
  }
#pragma omp parallel num_threads(kThreads)
  visit(kRounds);
  for (int i = 0; i < kThreads; ++i) expect(wrong[i] == 0);
  for (int i = 0; i < kCells; ++i) total += cells[i];
  printf("%.0f in all\n", total);
  return expect_result();
}
