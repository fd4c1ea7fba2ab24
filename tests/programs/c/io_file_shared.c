// SPDX-License-Identifier: Apache-2.0
// Proves: a file that main opened is written by all threads inside a critical section.
#include <omp.h>
#include <stdio.h>

#include "expect.h"

int main(void) {
  FILE* file = fopen("shared.txt", "w+");
  expect(file != NULL);
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 10; i++) {
#pragma omp critical
    fprintf(file, "%d\n", omp_get_thread_num() * 100 + i);
  }
  rewind(file);
  int sum = 0, count = 0, value = 0;
  while (fscanf(file, "%d", &value) == 1) {
    sum += value;
    count++;
  }
  fclose(file);
  remove("shared.txt");
  printf("%d %d\n", count, sum);
  expect(count == 40 && sum == 6000 + 180);
  return expect_result();
}
