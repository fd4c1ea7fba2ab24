// SPDX-License-Identifier: Apache-2.0
// Proves: copyin gives every thread the primary thread's values at the start of each region.
#include <omp.h>

#include "expect.h"

static int seed;
static char name[10];
static struct {
  double x, y;
} place;
#pragma omp threadprivate(seed, name, place)

int main(void) {
  int seeds[4];
  char letters[4];
  double ys[4];
  for (int round = 1; round <= 4; round++) {
    seed = round * 11;
    name[0] = (char)('a' + round);
    place.y = round / 4.0;
#pragma omp parallel num_threads(4) copyin(seed, name, place)
    {
      int me = omp_get_thread_num();
      seeds[me] = seed;
      letters[me] = name[0];
      ys[me] = place.y;
      seed = -1;
      place.y = -1;
    }
    for (int i = 0; i < 4; i++) {
      printf("%d %c %g\n", seeds[i], letters[i], ys[i]);
      expect(seeds[i] == round * 11 && letters[i] == 'a' + round && ys[i] == round / 4.0);
    }
  }
  return expect_result();
}
