// SPDX-License-Identifier: Apache-2.0
// Proves: threads exchange rows by barriers alone, phase after phase.
#include <omp.h>

#include "expect.h"

enum { kThreads = 4, kPhases = 30 };
static struct {
  int value;
  char pad[4092];
} cell[2][kThreads];

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(kThreads)
  {
    int me = omp_get_thread_num();
    cell[0][me].value = me;
#pragma omp barrier
    for (int phase = 0; phase < kPhases; phase++) {
      int left = cell[phase % 2][(me + kThreads - 1) % kThreads].value;
      cell[(phase + 1) % 2][me].value = left + 1;
#pragma omp barrier
    }
    int expected = (me + kThreads * kPhases - kPhases) % kThreads + kPhases;
    if (cell[kPhases % 2][me].value != expected) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
  }
  for (int i = 0; i < kThreads; i++) printf("%d\n", cell[kPhases % 2][i].value);
  expect(wrong == 0);
  return expect_result();
}
