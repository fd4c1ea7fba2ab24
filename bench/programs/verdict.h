// SPDX-License-Identifier: Apache-2.0
// What each program of bench/run.py prints: its own time of the parallel part, and if it is right.
#ifndef AMASIA_BENCH_PROGRAMS_VERDICT_H
#define AMASIA_BENCH_PROGRAMS_VERDICT_H

#include <stdio.h>

// The value is main's exit code.
static inline int verdict(double seconds, double value, double expected, double tolerance) {
  double off = value > expected ? value - expected : expected - value;
  int right = off <= tolerance;
  printf("value %.17g\n", value);
  printf("seconds %.6f\n", seconds);
  printf("%s\n", right ? "verified" : "WRONG");
  return right ? 0 : 1;
}

#endif
