/* SPDX-License-Identifier: Apache-2.0 */
/* A loop whose schedule is chosen when it runs, ten times. */
/* at_run_time [runs [it chooses a static one itself]] */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int runs = argc > 1 ? atoi(argv[1]) : 10;
  long sum = 0;
  if (argc > 2) omp_set_schedule(omp_sched_static, 0);
  for (int run = 0; run < runs; run++) {
    sum = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
    for (long item = 0; item < 1000; item++) sum += item;
  }
  printf("%ld\n", sum);
  return 0;
}
