// SPDX-License-Identifier: Apache-2.0
// Proves: what the region wrote is seen by the serial part, and the other way about, again and
// again.
#include <omp.h>

#include "expect.h"

static int cells[4 * 1024];

int main(void) {
  for (int round = 0; round < 20; round++) {
#pragma omp parallel num_threads(4)
    cells[omp_get_thread_num() * 1024] += round;
    for (int i = 0; i < 4; i++) cells[i * 1024] *= 2;
  }
  int expected = 0;
  for (int round = 0; round < 20; round++) expected = (expected + round) * 2;
  for (int i = 0; i < 4; i++) {
    printf("%d\n", cells[i * 1024]);
    expect(cells[i * 1024] == expected);
  }
  return expect_result();
}
