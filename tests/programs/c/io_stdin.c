// SPDX-License-Identifier: Apache-2.0
// Proves: standard input is read by the program, before and between regions.
#include <omp.h>
#include <stdio.h>

#include "expect.h"

int main(void) {
  double values[64];
  int count = 0;
  while (count < 5 && scanf("%lf", &values[count]) == 1) count++;
  double sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < count; i++) sum += values[i] * values[i];
  printf("%d: %g\n", count, sum);
  while (count < 64 && scanf("%lf", &values[count]) == 1) count++;
  sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < count; i++) sum += values[i];
  printf("%d: %g\n", count, sum);
  expect(feof(stdin));
  return expect_result();
}
