// SPDX-License-Identifier: Apache-2.0
// Proves: copyin of scalars, arrays and structs from the thread that forks, in regions with other
// shared data, in combined loops, and again after the copies were changed. At the end a region
// writes through a pointer to a thread-local variable of the thread that forks.
#include <omp.h>
#include <string.h>

#include "expect.h"

static int table[600];
static char text[33];
static double value;
static struct {
  short a;
  long b[5];
} record;
#pragma omp threadprivate(table, text, value, record)
static _Thread_local long tally;

static int check(int round) {
  int wrong = 0;
  for (int i = 0; i < 600; i++) wrong += table[i] != round * 1000 + i;
  wrong += strlen(text) != (size_t)(round + 3) || text[0] != 'a' + round;
  wrong += value != round + 0.5;
  wrong += record.a != -round || record.b[4] != round * 10000000000L;
  return wrong;
}

static void set(int round) {
  for (int i = 0; i < 600; i++) table[i] = round * 1000 + i;
  memset(text, 0, sizeof text);
  memset(text, 'a' + round, (size_t)(round + 3));
  value = round + 0.5;
  record.a = (short)-round;
  record.b[4] = round * 10000000000L;
}

int main(void) {
  int wrong = 0, sum = 0, where[4] = {0};
  long weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int round = 1; round <= 5; round++) {
    set(round);
#pragma omp parallel num_threads(4) copyin(table, text, value, record) shared(sum, weights) \
    reduction(+ : wrong)
    {
      wrong += check(round);
      where[omp_get_thread_num()] += (int)weights[round];
#pragma omp atomic
      sum += round;
      set(round + 20);
    }
    expect(check(round + 20) == 0);  // this thread's own
    set(round);
#pragma omp parallel for num_threads(4) schedule(dynamic) copyin(table, text, value, record) \
    reduction(+ : wrong)
    for (int i = 0; i < 40; i++) wrong += check(round);
  }
  // The threads' copies last until the next region, which copies nothing.
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  wrong += check(5);
  long* total = &tally;
#pragma omp parallel num_threads(4) firstprivate(total)
  {
#pragma omp critical
    *total += 10;
#pragma omp barrier
#pragma omp atomic
    *total += 1;
  }
  printf("%d wrong, sum %d, where %d %d, tally %ld\n", wrong, sum, where[0], where[3], tally);
  expect(wrong == 0 && sum == 60 && where[3] == 20 && tally == 44);
  return expect_result();
}
