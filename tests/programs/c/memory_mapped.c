// SPDX-License-Identifier: Apache-2.0
// Proves: regions may use what the program maps by itself, anonymous memory and files, moved or
// unmapped in between. (That they are shared again when nothing of it is left: launch_region.)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expect.h"

enum { kNumbers = 1 << 16 };

static double sum_of(const double* numbers, int count) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < count; ++i) sum += numbers[i];
  return sum;
}

static void fill(double* numbers, int count) {
#pragma omp parallel for
  for (int i = 0; i < count; ++i) numbers[i] = i % 100;
}

int main(void) {
  const size_t size = kNumbers * sizeof(double);
  double* const plain = malloc(size);
  fill(plain, kNumbers);
  const double expected = sum_of(plain, kNumbers);

  double* numbers =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(numbers != MAP_FAILED);
  fill(numbers, kNumbers);
  expect(sum_of(numbers, kNumbers) == expected);
  numbers = mremap(numbers, size, 2 * size, MREMAP_MAYMOVE);
  expect(numbers != MAP_FAILED);
  expect(sum_of(numbers, 2 * kNumbers) == expected);

  char name[] = "/tmp/memory_mapped_XXXXXX";
  const int file = mkstemp(name);
  expect(file >= 0 && unlink(name) == 0);
  expect(write(file, numbers, size) == (ssize_t)size);
  double* const read_only = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  expect(read_only != MAP_FAILED);
  expect(sum_of(read_only, kNumbers) == expected);
  double* const shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  expect(shared != MAP_FAILED);
  fill(shared, kNumbers / 2);
  expect(sum_of(shared, kNumbers) == expected);

  // What fails takes nothing away.
  expect(munmap((char*)shared + 1, size) != 0 && munmap(shared, 0) != 0);
  expect(mremap(shared, size, 0, 0) == MAP_FAILED);
  expect(sum_of(shared, kNumbers) == expected);
  expect(munmap(shared, size) == 0);
  expect(sum_of(read_only, kNumbers) == expected);
  expect(munmap(read_only, size) == 0);
  expect(munmap(numbers, size) == 0 && munmap(numbers + kNumbers, size) == 0);
  close(file);
  fill(plain, kNumbers);
  printf("%.0f\n", sum_of(plain, kNumbers));
  free(plain);
  return expect_result();
}
