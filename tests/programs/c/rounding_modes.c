// SPDX-License-Identifier: Apache-2.0
// Proves: threads on all nodes round, and treat denormal numbers, as the program has set it before
// its first region; and with libomp as it has before each later one.
#include <fenv.h>
#include <omp.h>
#include <xmmintrin.h>

#include "expect.h"

enum { kFlushToZero = 0x8000 };

static volatile double one = 1, three = 3, small = 1e-300;

static void show(const char *when) {
  static double third[64], tiny[64];
#pragma omp parallel
  {
    const int me = omp_get_thread_num();
    third[me] = one / three;
    tiny[me] = small * 1e-10;
  }
  for (int i = 0; i < omp_get_max_threads(); i++) {
    printf("%s: thread %d: %.20g %g\n", when, i, third[i], tiny[i]);
  }
}

#ifdef __clang__
enum { kFollowsLater = 1 };
#else
enum { kFollowsLater = 0 };  // libgomp's threads keep what they were made with
#endif

int main(void) {
  expect(fesetround(FE_UPWARD) == 0);
  _mm_setcsr(_mm_getcsr() | kFlushToZero);
  show("first");
  if (kFollowsLater) {
    expect(fesetround(FE_DOWNWARD) == 0);
    _mm_setcsr(_mm_getcsr() & ~(unsigned)kFlushToZero);
    show("later");
  }
  return expect_result();
}
