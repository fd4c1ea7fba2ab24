// SPDX-License-Identifier: Apache-2.0
// Proves: threads that go on elsewhere in the middle of a region take their threadprivate variables
// along, in the middle of a loop and between two, and find them again in the regions that follow.
// threadprivate_follows [steps]
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

enum { kSteps = 40, kCells = 8192, kThreads = 4, kRounds = 3 };

// Functions of their own use the table, as programs' timers do, so that no address of it is kept.
static long visits, iterations, largest = -1;
static double sums[16];
#pragma omp threadprivate(visits, iterations, largest, sums)

// To show that the program stays then.
#ifdef TAKES_ADDRESS
static long* volatile of_a_thread;  // a store that stays
#define KEEP(variable) of_a_thread = &(variable)
#else
#define KEEP(variable)
#endif

static double cells[kCells];
static int wrong[kThreads];

__attribute__((noinline)) static void add_to(int at) { sums[at] += 1; }
__attribute__((noinline)) static double sum_at(int at) { return sums[at]; }

static void expect_visits(long expected) {
  wrong[omp_get_thread_num()] += visits != expected || iterations != expected * kCells / kThreads;
}

// Each page has cells of all threads, which wait for one another.
static void relax(int step) {
#pragma omp for schedule(static, 1)
  for (int i = 0; i < kCells; ++i) {
    cells[i] += (i % 7) + step % 3;
    ++iterations;
    add_to(i % 16);
    if (i > largest) largest = i;
  }
  ++visits;
}

// Its thread has each of a residue class of the cells' numbers.
static void check_sums(long expected) {
  const int me = omp_get_thread_num();
  for (int i = 0; i < 16; ++i) {
    wrong[me] += sum_at(i) != (i % kThreads == me ? expected * kCells / 16 : 0);
  }
  wrong[me] += largest != kCells - kThreads + me;
  expect_visits(expected);
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : kSteps;
  double total = 0;
  KEEP(visits);
  omp_set_dynamic(0);
  for (int round = 0; round < kRounds; ++round) {
#pragma omp parallel num_threads(kThreads)
    for (int step = 0; step < steps; ++step) {
      relax(step);
      if (step % 16 == 0) expect_visits((long)round * steps + step + 1);
    }
#pragma omp parallel num_threads(kThreads)
    check_sums((round + 1L) * steps);
  }
  for (int i = 0; i < kThreads; ++i) expect(wrong[i] == 0);
  for (int i = 0; i < kCells; ++i) total += cells[i];
  printf("%.0f in all\n", total);
  return expect_result();
}
