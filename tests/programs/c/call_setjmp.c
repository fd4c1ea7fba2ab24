// SPDX-License-Identifier: Apache-2.0
// Proves: setjmp and longjmp inside one thread of a region, and in main around regions.
#include <omp.h>
#include <setjmp.h>

#include "expect.h"

static void leap(jmp_buf* where, int depth) {
  if (depth == 0) longjmp(*where, 7);
  leap(where, depth - 1);
}

// Not in the region itself: gcc-12 makes an endless loop of setjmp in an outlined function.
static __attribute__((noinline)) int come_back(void) {
  jmp_buf here;
  volatile int count = 0;
  int value = setjmp(here);
  count = count + 1;
  if (count < 4) leap(&here, count * 3);
  return value * 10 + count;
}

int main(void) {
  int results[4] = {0};
  jmp_buf around;
  volatile int passes = 0;
  if (setjmp(around) < 3) passes = passes + 1;
#pragma omp parallel num_threads(4)
  results[omp_get_thread_num()] += come_back();
  if (passes < 3) longjmp(around, passes);
  for (int i = 0; i < 4; i++) {
    printf("%d\n", results[i]);
    expect(results[i] == 3 * 74);
  }
  return expect_result();
}
