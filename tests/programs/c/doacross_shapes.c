// SPDX-License-Identifier: Apache-2.0
// Proves: doacross loops of one to three dimensions, rising and falling, with strides, over signed
// and unsigned loop variables, with every schedule, and one after the other without a barrier.
#include <omp.h>
#include <string.h>

#include "expect.h"

enum { kSize = 12 };
static long line[200], plane[kSize][kSize], cube[kSize][kSize][kSize];

static unsigned long mixed(const long* values, int count) {
  unsigned long sum = 0;
  for (int i = 0; i < count; i++) sum = sum * 3 + (unsigned long)values[i];
  return sum;
}

static unsigned long total(void) {
  unsigned long sum = mixed(line, 200);
  for (int i = 0; i < kSize; i++) {
    sum = sum * 5 + mixed(plane[i], kSize);
    for (int j = 0; j < kSize; j++) sum = sum * 7 + mixed(cube[i][j], kSize);
  }
  memset(line, 0, sizeof line);
  memset(plane, 0, sizeof plane);
  memset(cube, 0, sizeof cube);
  return sum;
}

// clang-format off
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define ALL(NAME, SCHEDULE) \
  static unsigned long NAME(void) { \
    PRAGMA(omp parallel num_threads(4)) { \
      PRAGMA(omp for ordered(1) nowait SCHEDULE) \
      for (int i = 199; i >= 3; i -= 2) { \
        PRAGMA(omp ordered depend(sink : i + 2) depend(sink : i + 6)) \
        line[i] = i + 1 + (i + 2 < 200 ? line[i + 2] / 2 : 0); \
        PRAGMA(omp ordered depend(source)) \
      } \
      PRAGMA(omp for ordered(2) nowait SCHEDULE) \
      for (int i = 1; i < kSize - 1; i++) \
        for (int j = kSize - 2; j > 0; j--) { \
          PRAGMA(omp ordered depend(sink : i - 1, j + 1) depend(sink : i, j + 1)) \
          plane[i][j] = 1 + i * j + plane[i - 1][j + 1] + plane[i][j + 1]; \
          PRAGMA(omp ordered depend(source)) \
        } \
      PRAGMA(omp for ordered(3) SCHEDULE) \
      for (int i = 1; i < kSize; i++) \
        for (int j = 1; j < kSize; j++) \
          for (int k = 1; k < kSize; k++) { \
            PRAGMA(omp ordered depend(sink : i - 1, j, k) depend(sink : i, j - 1, k)) \
            cube[i][j][k] = i + j + k + cube[i - 1][j][k] + cube[i][j - 1][k]; \
            PRAGMA(omp ordered depend(source)) \
          } \
      PRAGMA(omp barrier) \
      PRAGMA(omp for ordered(1) SCHEDULE) \
      for (unsigned long long u = 4; u < 150; u += 3) { \
        PRAGMA(omp ordered depend(sink : u - 3)) \
        line[u] += line[u - 3] + (long)u; \
        PRAGMA(omp ordered depend(source)) \
      } \
    } \
    return total(); \
  }
// clang-format on

ALL(in_blocks, schedule(static))
ALL(in_chunks, schedule(static, 2))
ALL(dynamic, schedule(dynamic))
ALL(dynamic_2, schedule(dynamic, 2))
ALL(guided, schedule(guided))
ALL(at_run_time, schedule(runtime))

int main(void) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  unsigned long expected = 0;
#pragma omp parallel num_threads(1)
  expected = in_blocks();
  omp_set_num_threads(threads);
  printf("%lu\n", expected);
  expect(in_blocks() == expected);
  expect(in_chunks() == expected);
  expect(dynamic() == expected);
  expect(dynamic_2() == expected);
  expect(guided() == expected);
  omp_set_schedule(omp_sched_dynamic, 3);
  expect(at_run_time() == expected);
  omp_set_schedule(omp_sched_static, 1);
  expect(at_run_time() == expected);
  return expect_result();
}
