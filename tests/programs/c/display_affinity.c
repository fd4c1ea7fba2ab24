// SPDX-License-Identifier: Apache-2.0
// OMP_DISPLAY_AFFINITY shows each thread of a team once, by its number in the whole team, and a
// team again only after a change: of its size or, where gcc's threads carry the nodes' speeds, of
// where its threads are. libomp shows on standard output what libgomp shows on standard error.
// (Nested teams are left out: libgomp-12 shows wrong numbers of them.)
#include <omp.h>
#include <stdio.h>

static int counted;

static void region(int threads) {
#pragma omp parallel num_threads(threads) reduction(+ : counted)
  counted += omp_get_num_threads();
}

int main(void) {
  for (int again = 0; again < 3; ++again) region(4);
  region(8);
  region(4);
  omp_set_affinity_format("then %{thread_num} of %{num_threads}");
  region(6);
  printf("%d\n", counted);
  return 0;
}
