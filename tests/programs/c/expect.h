// SPDX-License-Identifier: Apache-2.0
// Self-checks of the test programs: expect() may be called by any thread.
#ifndef AMASIA_TESTS_PROGRAMS_EXPECT_H
#define AMASIA_TESTS_PROGRAMS_EXPECT_H

#include <stdio.h>

static int expect_failures;

#define expect(condition)                                                   \
  do {                                                                      \
    if (!(condition)) {                                                     \
      __atomic_add_fetch(&expect_failures, 1, __ATOMIC_RELAXED);            \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);        \
    }                                                                       \
  } while (0)

// Prints the verdict; the value is main's exit code.
static inline int expect_result(void) {
  printf("%s\n", expect_failures == 0 ? "as expected" : "NOT as expected");
  return expect_failures == 0 ? 0 : 1;
}

#endif
