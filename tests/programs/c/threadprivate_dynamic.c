// SPDX-License-Identifier: Apache-2.0
// Proves: a team may have fewer threads than were asked for (omp_set_dynamic), so that some have no
// threadprivate variables yet when a later team is larger.
#include <omp.h>

#include "expect.h"

static int mine = 7;
#pragma omp threadprivate(mine)

int main(void) {
  int* const of_main = &mine;
  int wrong = 0;
  for (int round = 0; round < 20; round++) {
    omp_set_dynamic(1);
#pragma omp parallel num_threads(4) firstprivate(of_main) reduction(+ : wrong)
    {
      wrong += *of_main < 7;
#pragma omp barrier
      mine++;
    }
    omp_set_dynamic(0);
#pragma omp parallel num_threads(4) reduction(+ : wrong)
    {
      wrong += omp_get_num_threads() != 4 || mine < 7;
      mine++;
    }
    expect(mine == 7 + 2 * (round + 1));
  }
  expect(wrong == 0);
  return expect_result();
}
