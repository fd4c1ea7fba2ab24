// SPDX-License-Identifier: Apache-2.0
// Proves: threads that skip to the next loop at their own pace take part in a loop with break-free
// bounds from memory.
#include <omp.h>

#include "expect.h"

static int bounds[8] = {5, 0, 17, 64, 1, 3, 128, 9};
static int visited[8];

int main(void) {
#pragma omp parallel num_threads(4)
  for (int loop = 0; loop < 8; loop++) {
#pragma omp for schedule(dynamic, 2)
    for (int i = 0; i < bounds[loop]; i++) __atomic_add_fetch(&visited[loop], 1, __ATOMIC_RELAXED);
#pragma omp master
    bounds[(loop + 1) % 8] += loop;
#pragma omp barrier
  }
  for (int loop = 0; loop < 8; loop++) printf("%d\n", visited[loop]);
  expect(visited[0] == 5 && visited[1] == 0 && visited[2] == 18 && visited[7] == 15);
  return expect_result();
}
