// SPDX-License-Identifier: Apache-2.0
// Proves: ordered parts come in order for every schedule and width of loop variable, rising and
// falling, where only some iterations have one, and in loops that follow without a barrier.
#include <omp.h>

#include "expect.h"

static long long order[200];
static int length;

static void note(long long value) { order[length++] = value; }

static void check(const char* what, long long first, long long step, int count) {
  int wrong = length != count;
  for (int i = 0; i < length && i < count; i++) wrong += order[i] != first + i * step;
  printf("%s: %d, %d wrong\n", what, length, wrong);
  expect(wrong == 0);
  length = 0;
}

#define LOOP(NAME, TYPE, SCHEDULE)                                             \
  static void NAME(TYPE lower, TYPE upper) {                                   \
    _Pragma("omp parallel num_threads(4)") {                                   \
      _Pragma(SCHEDULE) for (TYPE i = lower; i < upper; i += 3) {              \
        _Pragma("omp ordered") note((long long)i);                             \
      }                                                                        \
      _Pragma(SCHEDULE) for (TYPE i = upper; i > lower; i -= 3) {              \
        if (i % 2 == 0) {                                                      \
          _Pragma("omp ordered") order[100 + i % 50] = omp_get_thread_num();   \
        }                                                                      \
      }                                                                        \
    }                                                                          \
    check(#NAME, (long long)lower, 3, (int)((upper - lower + 2) / 3));         \
  }
#define LOOPS(SUFFIX, TYPE)                                                    \
  LOOP(static_##SUFFIX, TYPE, "omp for ordered schedule(static)")              \
  LOOP(static_5_##SUFFIX, TYPE, "omp for ordered schedule(static, 5)")         \
  LOOP(dynamic_##SUFFIX, TYPE, "omp for ordered schedule(dynamic)")            \
  LOOP(dynamic_4_##SUFFIX, TYPE, "omp for ordered schedule(dynamic, 4)")       \
  LOOP(guided_##SUFFIX, TYPE, "omp for ordered schedule(guided)")              \
  LOOP(guided_3_##SUFFIX, TYPE, "omp for ordered schedule(guided, 3)")         \
  LOOP(auto_##SUFFIX, TYPE, "omp for ordered schedule(auto)")                  \
  LOOP(runtime_##SUFFIX, TYPE, "omp for ordered schedule(runtime)")            \
  LOOP(nowait_##SUFFIX, TYPE, "omp for ordered schedule(dynamic, 2) nowait")   \
  static void all_##SUFFIX(TYPE lower, TYPE upper) {                           \
    static_##SUFFIX(lower, upper);                                             \
    static_5_##SUFFIX(lower, upper);                                           \
    dynamic_##SUFFIX(lower, upper);                                            \
    dynamic_4_##SUFFIX(lower, upper);                                          \
    guided_##SUFFIX(lower, upper);                                             \
    guided_3_##SUFFIX(lower, upper);                                           \
    auto_##SUFFIX(lower, upper);                                               \
    runtime_##SUFFIX(lower, upper);                                            \
    nowait_##SUFFIX(lower, upper);                                             \
  }

LOOPS(int, int)
LOOPS(unsigned, unsigned)
LOOPS(long, long long)
LOOPS(ulong, unsigned long long)

int main(void) {
  all_int(-30, 41);
  all_unsigned(5, 44);
  all_long(-5000000000ll, -4999999900ll);
  all_ulong(9000000000ull, 9000000061ull);
  for (int kind = 1; kind <= 4; kind++) {
    omp_set_schedule((omp_sched_t)kind, 2);
    runtime_int(0, 50);
    runtime_ulong(3, 71);
  }
  dynamic_int(0, 1);
  static_int(0, 4);
  return expect_result();
}
