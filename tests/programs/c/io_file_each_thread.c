// SPDX-License-Identifier: Apache-2.0
// Proves: each thread writes a file of its own, which the serial part reads.
#include <omp.h>
#include <stdio.h>

#include "expect.h"

int main(void) {
  int opened = 0;
#pragma omp parallel num_threads(4) reduction(+ : opened)
  {
    char name[32];
    snprintf(name, sizeof name, "thread%d.txt", omp_get_thread_num());
    FILE* file = fopen(name, "w");
    if (file != NULL) {
      opened++;
      for (int i = 0; i < 20; i++) fprintf(file, "%d\n", i * omp_get_thread_num());
      fclose(file);
    }
  }
  expect(opened == 4);
  for (int thread = 0; thread < 4; thread++) {
    char name[32];
    snprintf(name, sizeof name, "thread%d.txt", thread);
    FILE* file = fopen(name, "r");
    int sum = 0, value = 0;
    while (file != NULL && fscanf(file, "%d", &value) == 1) sum += value;
    if (file != NULL) fclose(file);
    printf("%d\n", sum);
    expect(sum == 190 * thread && remove(name) == 0);
  }
  return expect_result();
}
