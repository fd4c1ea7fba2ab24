// SPDX-License-Identifier: Apache-2.0
// Proves: num_threads and omp_set_num_threads choose the size of each team.
#include <omp.h>

#include "expect.h"

int main(void) {
  for (int wanted = 1; wanted <= 6; wanted++) {
    int sum = 0;
#pragma omp parallel num_threads(wanted) reduction(+ : sum)
    {
      expect(omp_get_num_threads() == wanted);
      sum += omp_get_thread_num() + 1;
    }
    expect(sum == wanted * (wanted + 1) / 2);
    printf("clause %d: %d\n", wanted, sum);
  }
  for (int wanted = 4; wanted >= 1; wanted--) {
    int sum = 0;
    omp_set_num_threads(wanted);
    expect(omp_get_max_threads() == wanted);
#pragma omp parallel reduction(+ : sum)
    sum += omp_get_thread_num() + 1;
    expect(sum == wanted * (wanted + 1) / 2);
    printf("call %d: %d\n", wanted, sum);
  }
  return expect_result();
}
