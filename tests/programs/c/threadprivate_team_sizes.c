// SPDX-License-Identifier: Apache-2.0
// Proves: threads with threadprivate variables may end, as they do when a team is smaller than the
// one before or resources are paused, and teams of any size go on.
#include <omp.h>

#include "expect.h"

static int mine = 3;
static double table[2000];
#pragma omp threadprivate(mine, table)

static int ran[6];

static void visit(void) {
  int me = omp_get_thread_num();
  mine = me;
  table[me] += 1;
  ran[me]++;
}

int main(void) {
  const int sizes[] = {4, 2, 6, 3, 1, 5, 4};
  omp_set_dynamic(0);
  for (int round = 0; round < 21; round++) {
    int threads = sizes[round % 7];
    int* of_main = &mine;
#pragma omp parallel num_threads(threads)
    visit();
#pragma omp parallel num_threads(threads)
    expect(mine == omp_get_thread_num());
    if (round % 3 == 1) {
#pragma omp parallel num_threads(threads) firstprivate(of_main)
      expect(mine == omp_get_thread_num() && *of_main == 0);
    }
    if (round == 8) printf("pause: %d\n", omp_pause_resource_all(omp_pause_soft));
    expect(mine == 0 && table[0] == round + 1);
  }
  for (int i = 0; i < 6; i++) printf("thread %d ran %d times\n", i, ran[i]);
  return expect_result();
}
