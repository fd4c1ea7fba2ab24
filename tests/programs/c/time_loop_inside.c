// SPDX-License-Identifier: Apache-2.0
// A time loop inside of one region, in which nodes write the same pages all the time: threads that
// find that too dear go on elsewhere in the middle of it, with all that they were.
// time_loop_inside [steps [the last thread calls exit(7) in this one]]
#include <fenv.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSteps = 400, kCells = 8192 };

static double cells[kCells];
static int owner[kCells];
static long in_turn, singles, criticals, sections_done, nested_sum, mastered, misplaced;
static omp_lock_t lock;

static void relax(int step) {
  // Each page has elements of all threads.
#pragma omp for schedule(static, 1)
  for (int i = 0; i < kCells; ++i) cells[i] += (i % 7) + step % 3;
}

// What a static loop gave a thread it gives again.
static void place(int step) {
#pragma omp for
  for (int i = 0; i < kCells; ++i) {
    if (step == 0) owner[i] = omp_get_thread_num();
    if (owner[i] != omp_get_thread_num()) {
#pragma omp atomic
      ++misplaced;
    }
  }
}

// The constructs that few steps have.
static void other_constructs(void) {
#pragma omp for schedule(dynamic, 100)
  for (int i = 0; i < kCells; ++i) cells[i] -= 1;
#pragma omp for ordered schedule(static, 1)
  for (int i = 0; i < 8; ++i) {
#pragma omp ordered
    in_turn = in_turn * 3 % 1000003 + i;
  }
#pragma omp sections
  {
#pragma omp section
    {
#pragma omp atomic
      ++sections_done;
    }
#pragma omp section
    {
#pragma omp atomic
      ++sections_done;
    }
  }
  long sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
  for (int i = 0; i < 10; ++i) sum += i;
#pragma omp atomic
  nested_sum += sum;
#pragma omp master
  ++mastered;
#pragma omp barrier
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : kSteps;
  const int last_step = argc > 2 ? atoi(argv[2]) : -1;
  double total = 0, largest = 0;
  int threads = 0, differs = 0, rounding_kept = 0;
  omp_init_lock(&lock);
#pragma omp parallel reduction(+ : rounding_kept)
  {
    const int number = omp_get_thread_num();
    long mine = 0;
    double own = number;  // on the thread's stack, or in a register
    fesetround(FE_DOWNWARD);
    for (int step = 0; step < steps; ++step) {
      relax(step);
      place(step);
#pragma omp single
      threads = omp_get_num_threads();
#pragma omp single nowait
      {
#pragma omp atomic
        ++singles;
      }
      int given = 0;
#pragma omp single copyprivate(given)
      given = step * 3;
      if (given != step * 3 || omp_get_thread_num() != number) {
#pragma omp atomic
        ++differs;
      }
#pragma omp critical
      ++criticals;
      omp_set_lock(&lock);
      mine += criticals > 0;
      omp_unset_lock(&lock);
#pragma omp for reduction(+ : total) reduction(max : largest)
      for (int i = 0; i < kCells; ++i) {
        total += cells[i] * 0.5;
        if (cells[i] > largest) largest = cells[i];
      }
      if (step % 8 == 0) other_constructs();
      own += 1;
      if (step == last_step && number == omp_get_num_threads() - 1) exit(7);
    }
    if (mine != steps || own != number + steps) {
#pragma omp atomic
      ++differs;
    }
    rounding_kept += fegetround() == FE_DOWNWARD;
    fesetround(FE_TONEAREST);
  }
  omp_destroy_lock(&lock);
  printf("%d threads, %.1f in all, %.1f at most, %ld singles, %ld criticals, %ld in order\n",
         threads, total, largest, singles, criticals, in_turn);
  printf("%ld sections, %ld nested, %ld by the master, %ld misplaced, %d differ, %d rounded\n",
         sections_done, nested_sum, mastered, misplaced, differs, rounding_kept);
  return 0;
}
