// SPDX-License-Identifier: Apache-2.0
// Proves: if(0), final, mergeable and priority tasks all run, and know if they are final.
#include <omp.h>

#include "expect.h"

int main(void) {
  int undeferred = 0, final_seen = 0, included = 0, count = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  {
#pragma omp task if (0) shared(undeferred)
    undeferred = 1;
    expect(undeferred == 1);
#pragma omp task final(1) shared(final_seen, included)
    {
      final_seen = omp_in_final();
#pragma omp task shared(included)
      included = omp_in_final();
    }
    for (int i = 0; i < 10; i++) {
#pragma omp task priority(i) mergeable shared(count)
#pragma omp atomic
      count++;
    }
  }
  printf("%d %d %d %d\n", undeferred, final_seen, included, count);
  expect(final_seen == 1 && included == 1 && count == 10);
  return expect_result();
}
