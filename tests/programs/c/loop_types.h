// SPDX-License-Identifier: Apache-2.0
// Loops over every integer type, up and down, with strides and at the ends of the range. The
// includer defines LOOP_PRAGMA, the work-sharing directive, with reduction(+ : count, sum).
#ifndef AMASIA_TESTS_PROGRAMS_LOOP_TYPES_H
#define AMASIA_TESTS_PROGRAMS_LOOP_TYPES_H

#include <limits.h>

#include "expect.h"

typedef unsigned long long Wide;
typedef signed char Byte;

// clang-format off
#define RUN(type, from, test, to, step)                      \
  do {                                                       \
    Wide count = 0, sum = 0, left = 0, right = 0;            \
    LOOP_PRAGMA                                              \
    for (type i = (from); i test (to); i += (step)) {        \
      count++;                                               \
      sum += (Wide)i * (Wide)i;                              \
    }                                                        \
    for (type i = (from); i test (to); i += (step)) {        \
      left++;                                                \
      right += (Wide)i * (Wide)i;                            \
    }                                                        \
    printf("%-16s %llu %llu\n", #type, count, sum);          \
    expect(count == left && sum == right);                   \
  } while (0)
// clang-format on

static inline int run_all_types(void) {
  RUN(int, 0, <, 300, 1);
  RUN(int, 300, >, 0, -1);
  RUN(int, -500, <=, 500, 7);
  RUN(int, 500, >=, -500, -13);
  RUN(int, INT_MAX - 100, <, INT_MAX - 1, 1);
  RUN(int, INT_MIN + 100, >, INT_MIN + 1, -1);
  RUN(int, 5, <, 5, 1);
  RUN(unsigned, 0u, <, 900u, 3u);
  RUN(unsigned, UINT_MAX - 50u, <, UINT_MAX - 1u, 1u);
  RUN(unsigned, 7u, <, 3u, 1u);
  RUN(long, -3000000000L, <, -2999999900L, 1);
  RUN(long, 3000000000L, >, 2999999000L, -9);
  RUN(unsigned long, 1ul << 62, <, (1ul << 62) + 777ul, 5ul);
  RUN(Wide, ~0ull - 300ull, <, ~0ull - 3ull, 2ull);
  RUN(Wide, 1ull << 63, <, (1ull << 63) + 100ull, 1ull);
  RUN(long, LONG_MAX - 100, <, LONG_MAX - 1, 1);
  RUN(long, LONG_MIN + 100, >, LONG_MIN + 1, -1);
  RUN(short, -150, <, 150, 1);
  RUN(unsigned char, 3, <, 200, 1);
  RUN(Byte, -50, <, 50, 1);
  return expect_result();
}

#endif
