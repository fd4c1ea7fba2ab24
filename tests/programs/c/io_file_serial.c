// SPDX-License-Identifier: Apache-2.0
// Proves: a file that serial parts write, read and remove, with the data computed in regions.
#include <omp.h>
#include <stdio.h>

#include "expect.h"

int main(void) {
  static int numbers[3000], back[3000];
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 3000; i++) numbers[i] = i * 3;
  FILE* file = fopen("numbers.bin", "wb");
  expect(file != NULL && fwrite(numbers, sizeof(int), 3000, file) == 3000);
  fclose(file);
  file = fopen("numbers.bin", "rb");
  expect(file != NULL && fread(back, sizeof(int), 3000, file) == 3000);
  fclose(file);
  long sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 3000; i++) sum += back[i];
  printf("%ld\n", sum);
  expect(sum == 3L * 3000 * 2999 / 2 && remove("numbers.bin") == 0);
  return expect_result();
}
