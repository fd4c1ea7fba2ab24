// SPDX-License-Identifier: Apache-2.0
// Proves: copyprivate hands private values of all shapes from one thread to the rest.
#include <omp.h>
#include <string.h>

#include "expect.h"

static int counter;
static int from_thread;
#pragma omp threadprivate(from_thread)

int main(void) {
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    for (int round = 0; round < 12; round++) {
      int number = -1;
      double row[20];
      char text[16] = "";
      int* where = NULL;
#pragma omp single copyprivate(number, row, text, where, from_thread)
      {
        number = ++counter;
        for (int i = 0; i < 20; i++) row[i] = number * 100 + i;
        snprintf(text, sizeof text, "round %d", number);
        where = &counter;
        from_thread = number * 7;
      }
      wrong += number != round + 1 || row[19] != (round + 1) * 100 + 19;
      wrong += where != &counter || from_thread != 7 * (round + 1);
      wrong += __atomic_load_n(where, __ATOMIC_RELAXED) < round + 1;
      char expected[16];
      snprintf(expected, sizeof expected, "round %d", round + 1);
      wrong += strcmp(text, expected) != 0;
    }
  }
  printf("%d %d\n", counter, wrong);
  expect(counter == 12 && wrong == 0);
  return expect_result();
}
