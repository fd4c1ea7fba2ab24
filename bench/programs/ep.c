// SPDX-License-Identifier: Apache-2.0
// Question: does work without any sharing scale to nodes as to threads? Gaussian pairs by the polar
// method from a multiplicative generator that each block of pairs starts for itself (the idea of
// the NAS benchmark EP); only ten counts and two sums meet at the end. A few pages move in all.
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>

#include "verdict.h"

enum { kBlockPairs = 1 << 14, kRings = 10 };
static const uint64_t kMultiplier = 1220703125u;  // 5^13
static const uint64_t kMask = (1ull << 46) - 1;

static uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = result * base & kMask;
    base = base * base & kMask;
  }
  return result;
}

// Of the default number of blocks; another number is for trying out and says WRONG.
static const double kExpected = 323615094723;

int main(int argc, char** argv) {
  int blocks = argc > 1 ? atoi(argv[1]) : 2048;
  long rings[kRings] = {0};
  double sum_x = 0, sum_y = 0;
  double start = omp_get_wtime();
#pragma omp parallel for schedule(static) reduction(+ : rings, sum_x, sum_y)
  for (int block = 0; block < blocks; block++) {
    uint64_t state = 271828183u * power(kMultiplier, 2ull * kBlockPairs * (uint64_t)block) & kMask;
    for (int pair = 0; pair < kBlockPairs; pair++) {
      state = state * kMultiplier & kMask;
      double x = 2 * ((double)state / (double)(1ull << 46)) - 1;
      state = state * kMultiplier & kMask;
      double y = 2 * ((double)state / (double)(1ull << 46)) - 1;
      double square = x * x + y * y;
      if (square > 1 || square == 0) continue;
      double factor = sqrt(-2 * log(square) / square);
      double a = fabs(x * factor), b = fabs(y * factor);
      rings[(int)(a > b ? a : b)]++;
      sum_x += x * factor;
      sum_y += y * factor;
    }
  }
  double seconds = omp_get_wtime() - start;
  double value = 0;
  for (int i = 0; i < kRings; i++) value = value * 3 + (double)rings[i];
  fprintf(stderr, "sums %.6f %.6f\n", sum_x, sum_y);
  return verdict(seconds, value, kExpected, 0.5);
}
