// SPDX-License-Identifier: Apache-2.0
// Proves: a thread reads and writes the local variables of another through a shared pointer.
#include <omp.h>

#include "expect.h"

static int* inbox[4];

int main(void) {
  int results[4];
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    int mine[16] = {0};
    inbox[me] = mine;
#pragma omp barrier
    for (int i = 0; i < 4; i++) inbox[(me + i) % 4][me] = 10 * me + 1;
#pragma omp barrier
    int sum = 0;
    for (int i = 0; i < 4; i++) sum += mine[i] * (me + 1);
    results[me] = sum;
#pragma omp barrier
  }
  for (int i = 0; i < 4; i++) {
    printf("%d\n", results[i]);
    expect(results[i] == 64 * (i + 1));
  }
  return expect_result();
}
