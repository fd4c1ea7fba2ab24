// SPDX-License-Identifier: Apache-2.0
// Proves: popen reads from and writes to commands around regions.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

int main(void) {
  char line[64] = "";
  int numbers[4] = {0};
  FILE* from = popen("echo 25; echo 17", "r");
  expect(from != NULL);
  int first = 0, second = 0;
  if (fgets(line, sizeof line, from)) first = atoi(line);
  if (fgets(line, sizeof line, from)) second = atoi(line);
  expect(pclose(from) == 0);
#pragma omp parallel num_threads(4)
  numbers[omp_get_thread_num()] = first * second + omp_get_thread_num();
  printf("%d %d\n", first, second);
  fflush(stdout);
  FILE* to = popen("sort -rn", "w");
  expect(to != NULL);
  for (int i = 0; i < 4; i++) fprintf(to, "%d\n", numbers[i]);
  expect(pclose(to) == 0);
  return expect_result();
}
