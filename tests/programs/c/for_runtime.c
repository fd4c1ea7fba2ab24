// SPDX-License-Identifier: Apache-2.0
// Proves: omp_set_schedule chooses the schedule of later runtime loops, and is read back.
#include <omp.h>

#include "expect.h"

static int owner[400];

int main(void) {
  const omp_sched_t kinds[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided,
                               omp_sched_auto};
  for (int k = 0; k < 4; k++) {
    for (int chunk = 1; chunk < 20; chunk += 9) {
      omp_sched_t kind;
      int back;
      omp_set_schedule(kinds[k], chunk);
      omp_get_schedule(&kind, &back);
      expect(((int)kind & 7) == (int)kinds[k]);
      expect(kinds[k] == omp_sched_auto || back == chunk);
      long sum = 0;
#pragma omp parallel for num_threads(4) schedule(runtime) reduction(+ : sum)
      for (int i = 0; i < 400; i++) {
        sum += i;
        owner[i] = omp_get_thread_num();
      }
      expect(sum == 400 * 399 / 2);
      if (kinds[k] == omp_sched_static)
        for (int i = 0; i < 400; i++) expect(owner[i] == i / chunk % 4);
      printf("kind %d chunk %d: %ld\n", k, chunk, sum);
    }
  }
  return expect_result();
}
