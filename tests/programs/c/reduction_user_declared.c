// SPDX-License-Identifier: Apache-2.0
// Proves: a declared reduction over a structure with an initializer combines every share once.
#include <limits.h>
#include <omp.h>

#include "expect.h"

struct Range {
  int low, high, count;
  double sum;
};

static void widen(struct Range* into, const struct Range* from) {
  if (from->low < into->low) into->low = from->low;
  if (from->high > into->high) into->high = from->high;
  into->count += from->count;
  into->sum += from->sum;
}

#pragma omp declare reduction(widen : struct Range : widen(&omp_out, &omp_in)) \
    initializer(omp_priv = (struct Range){INT_MAX, INT_MIN, 0, 0.0})

int main(void) {
  struct Range range = {INT_MAX, INT_MIN, 0, 0.0};
#pragma omp parallel for num_threads(4) reduction(widen : range) schedule(dynamic, 11)
  for (int i = 0; i < 500; i++) {
    int value = (i * 131) % 997 - 300;
    struct Range one = {value, value, 1, value};
    widen(&range, &one);
  }
  int low = INT_MAX, high = INT_MIN;
  double sum = 0;
  for (int i = 0; i < 500; i++) {
    int value = (i * 131) % 997 - 300;
    low = value < low ? value : low;
    high = value > high ? value : high;
    sum += value;
  }
  printf("%d %d %d %g\n", range.low, range.high, range.count, range.sum);
  expect(range.low == low && range.high == high && range.count == 500 && range.sum == sum);
  return expect_result();
}
