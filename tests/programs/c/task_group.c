// SPDX-License-Identifier: Apache-2.0
// Proves: taskgroup waits for descendants, taskwait for children only.
#include <omp.h>

#include "expect.h"

static int leaves, children;

int main(void) {
  int after_group = 0, after_wait = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  {
#pragma omp taskgroup
    for (int i = 0; i < 8; i++) {
#pragma omp task
      for (int k = 0; k < 4; k++) {
#pragma omp task
#pragma omp atomic
        leaves++;
      }
    }
    after_group = leaves;
    for (int i = 0; i < 8; i++) {
#pragma omp task
#pragma omp atomic
      children++;
    }
#pragma omp taskwait
    after_wait = children;
  }
  printf("%d %d\n", after_group, after_wait);
  expect(after_group == 32 && after_wait == 8);
  return expect_result();
}
