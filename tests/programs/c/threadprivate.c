// SPDX-License-Identifier: Apache-2.0
// Proves: threadprivate variables keep their value from region to region, one for each thread.
#include <omp.h>

#include "expect.h"

static int counter = 10;
static double table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
#pragma omp threadprivate(counter, table)

int main(void) {
  int counters[4], master_address_same = 1;
  double sums[4];
  omp_set_dynamic(0);
  counter = 100;
  int* mine = &counter;
  for (int round = 0; round < 5; round++) {
#pragma omp parallel num_threads(4)
    {
      counter += omp_get_thread_num() + 1;
      table[round] += omp_get_thread_num();
#pragma omp master
      master_address_same &= mine == &counter;
    }
  }
#pragma omp parallel num_threads(4)
  {
    double sum = 0;
    for (int i = 0; i < 8; i++) sum += table[i];
    sums[omp_get_thread_num()] = sum;
    counters[omp_get_thread_num()] = counter;
  }
  for (int i = 0; i < 4; i++) {
    printf("%d %g\n", counters[i], sums[i]);
    expect(counters[i] == (i == 0 ? 100 : 10) + 5 * (i + 1));
    expect(sums[i] == 36 + 5 * i);
  }
  expect(master_address_same);
  return expect_result();
}
