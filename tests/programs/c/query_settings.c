// SPDX-License-Identifier: Apache-2.0
// Proves: settings made by calls are read back, in the serial part and by every thread.
#include <omp.h>

#include "expect.h"

int main(void) {
  omp_set_dynamic(0);
  omp_set_num_threads(3);
  omp_set_max_active_levels(2);
  omp_set_schedule(omp_sched_dynamic, 6);
  printf("%d %d %d %d\n", omp_get_dynamic(), omp_get_max_threads(), omp_get_max_active_levels(),
         omp_get_cancellation());
  int wrong = 0, inner[4] = {0};
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    omp_sched_t kind;
    int chunk;
    omp_get_schedule(&kind, &chunk);
    wrong += ((int)kind & 7) != (int)omp_sched_dynamic || chunk != 6;
    wrong += omp_get_max_threads() != 3 || omp_get_dynamic() != 0;
    wrong += omp_get_max_active_levels() != 2;
    omp_set_num_threads(omp_get_thread_num() + 1);
    inner[omp_get_thread_num()] = omp_get_max_threads();
  }
  for (int i = 0; i < 4; i++) expect(inner[i] == i + 1);
  printf("%d %d\n", wrong, omp_get_max_threads());
  expect(wrong == 0 && omp_get_max_threads() == 3);
  expect(omp_get_num_procs() >= 1 && omp_get_thread_limit() >= 4);
  expect(omp_get_num_teams() == 1 && omp_get_team_num() == 0 && omp_is_initial_device());
  return expect_result();
}
