// SPDX-License-Identifier: Apache-2.0
// Proves: a variable that main sets is seen by threads of every node.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

int main(void) {
  int wrong = 0;
  setenv("SET_BY_MAIN", "yes", 1);
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    const char* value = getenv("SET_BY_MAIN");
    wrong += value == NULL || strcmp(value, "yes") != 0;
  }
  printf("%d\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
