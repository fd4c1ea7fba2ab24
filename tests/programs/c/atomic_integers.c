// SPDX-License-Identifier: Apache-2.0
// Proves: atomic updates of every integer width lose nothing, also beside one another in a word.
#include <omp.h>
#include <stdint.h>

#include "expect.h"

static struct {
  int8_t a;
  uint8_t b;
  int16_t c;
  uint32_t d;
  int64_t e;
  int16_t f;
  int8_t g;
} cell = {0, 0, 0, 1, 0, -1, 0};

int main(void) {
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 24; round++) {
#pragma omp atomic
    cell.a++;
#pragma omp atomic update
    cell.b += 2;
#pragma omp atomic
    cell.c -= 3;
#pragma omp atomic
    cell.d = cell.d * 3;
#pragma omp atomic
    cell.e = 5 + cell.e;
#pragma omp atomic
    cell.f &= (int16_t) ~(1 << (round % 12));
#pragma omp atomic
    cell.g ^= (int8_t)(1 << (round % 6));
  }
  uint32_t power = 1;
  for (int i = 0; i < 96; i++) power *= 3;
  printf("%d %d %d %u %ld %d %d\n", cell.a, cell.b, cell.c, cell.d, (long)cell.e, cell.f, cell.g);
  expect(cell.a == 96 && cell.b == 192 && cell.c == -288 && cell.d == power && cell.e == 480);
  expect(cell.f == (int16_t)0xf000 && cell.g == 0);
  return expect_result();
}
