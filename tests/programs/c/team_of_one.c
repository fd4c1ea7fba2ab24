// SPDX-License-Identifier: Apache-2.0
// Proves: constructs in a team of one thread, whose loops libomp need not be asked about: last
// values, sections, loops without iterations, and teams inside that are larger, whose loops are
// divided, before and after loops of the team around them.
#include <omp.h>

#include "expect.h"

enum { kCount = 60 };

static int workers[kCount];

static void fill(int chunked) {
  if (chunked) {
#pragma omp for schedule(static, 7)
    for (int i = 0; i < kCount; i++) workers[i] += 1 + omp_get_thread_num();
  } else {
#pragma omp for schedule(static)
    for (int i = 0; i < kCount; i++) workers[i] += 1 + omp_get_thread_num();
  }
}

static int sum(void) {
  int all = 0;
  for (int i = 0; i < kCount; i++) {
    all += workers[i];
    workers[i] = 0;
  }
  return all;
}

int main(void) {
  int last = -1, untouched = 5, sections = 0;
  omp_set_max_active_levels(3);
#pragma omp parallel num_threads(1)
  {
#pragma omp for schedule(static, 4) lastprivate(last)
    for (int i = 90; i > 3; i -= 3) last = i;
#pragma omp for lastprivate(untouched)
    for (int i = 4; i < sections; i++) untouched = i;
#pragma omp sections
    {
#pragma omp section
      sections += 1;
#pragma omp section
      sections += 10;
#pragma omp section
      sections += 100;
    }
    fill(0);
    expect(sum() == kCount);
#pragma omp parallel num_threads(2)
    fill(1);
    const int two = sum();
    expect(two > kCount && two < 2 * kCount);  // both threads of the inner team had a part
    fill(1);
    expect(sum() == kCount);
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(1)
      {
#pragma omp for schedule(static)
        for (int i = 0; i < kCount; i++) {
#pragma omp atomic
          workers[i] += 1;
        }
      }
      fill(0);
    }
    const int three = sum() - 2 * kCount;  // each inner team of one went through all of its loop
    expect(three > kCount && three < 2 * kCount);
  }
#pragma omp parallel num_threads(4)
  fill(0);
  expect(sum() > kCount);
  printf("%d %d %d\n", last, untouched, sections);
  expect(last == 6 && sections == 111);
  return expect_result();
}
