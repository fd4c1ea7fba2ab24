// SPDX-License-Identifier: Apache-2.0
// Proves: collapsed loops, rectangular and not, cover the whole space once.
#include <omp.h>
#include <string.h>

#include "expect.h"

enum { kX = 9, kY = 11, kZ = 5 };
static unsigned char cube[kX][kY][kZ];

static void check_cube(const char* what) {
  int wrong = 0;
  for (int i = 0; i < kX * kY * kZ; i++) wrong += ((unsigned char*)cube)[i] != 1;
  printf("%s: %d wrong\n", what, wrong);
  expect(wrong == 0);
  memset(cube, 0, sizeof cube);
}

int main(void) {
#pragma omp parallel for num_threads(4) collapse(3)
  for (int x = 0; x < kX; x++)
    for (int y = kY - 1; y >= 0; y--)
      for (int z = 0; z < kZ; z++) __atomic_add_fetch(&cube[x][y][z], 1, __ATOMIC_RELAXED);
  check_cube("static");
#pragma omp parallel for num_threads(4) collapse(2) schedule(dynamic, 3)
  for (long x = 0; x < kX; x++)
    for (unsigned y = 0; y < kY; y++)
      for (int z = 0; z < kZ; z++) __atomic_add_fetch(&cube[x][y][z], 1, __ATOMIC_RELAXED);
  check_cube("dynamic");
  long sum = 0;
#pragma omp parallel for num_threads(4) collapse(2) reduction(+ : sum)
  for (int x = 0; x < 30; x++)
    for (int y = x; y < 30; y++) sum += x * 100 + y;
  long expected = 0;
  for (int x = 0; x < 30; x++)
    for (int y = x; y < 30; y++) expected += x * 100 + y;
  printf("triangle %ld\n", sum);
  expect(sum == expected);
  return expect_result();
}
