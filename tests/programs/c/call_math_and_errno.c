// SPDX-License-Identifier: Apache-2.0
// Proves: errno and the floating-point library are per thread, as in a plain run.
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

int main(void) {
  int errors[4];
  double values[4];
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    errno = 0;
    if (me % 2) (void)strtol("99999999999999999999999", NULL, 10);
#pragma omp barrier
    errors[me] = errno;
    values[me] = sin(me) + exp(-me) * pow(1.5, me) + tgamma(me + 1.0) + fmod(me * 7.5, 2.0);
  }
  for (int i = 0; i < 4; i++) {
    printf("%d %.17g\n", errors[i], values[i]);
    expect(errors[i] == (i % 2 ? ERANGE : 0));
  }
  return expect_result();
}
