// SPDX-License-Identifier: Apache-2.0
// Proves: two threads that store, then load each other's flag never both read the old value.
#include <omp.h>

#include "expect.h"

enum { kRounds = 40 };
// On pages of their own, so that the nodes really contend for two places.
static struct {
  int value;
  char pad[8188];
} flag[2];
static int seen[2][kRounds];

int main(void) {
  int both_old = 0;
#pragma omp parallel num_threads(2)
  {
    int me = omp_get_thread_num();
    for (int round = 0; round < kRounds; round++) {
#pragma omp atomic write seq_cst
      flag[me].value = round + 1;
#pragma omp atomic read seq_cst
      seen[me][round] = flag[1 - me].value;
#pragma omp barrier
    }
  }
  for (int round = 0; round < kRounds; round++)
    both_old += seen[0][round] <= round && seen[1][round] <= round;
  printf("%d\n", both_old);
  expect(both_old == 0);
  return expect_result();
}
