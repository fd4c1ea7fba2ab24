// SPDX-License-Identifier: Apache-2.0
// Proves: the program may set a locale that the C library has to load. What it keeps of it lies
// among the program's memory if it is taken for that, and threads of the runtime, for which sscanf
// looks for the decimal point there, wait for pages that they themselves would have to fetch. UCX
// scans at each look at its peers: the manifest has it look a thousand times a second.
#include <locale.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { kBlocks = 400, kSize = 400 };
static char* blocks[kBlocks];

static void allocate(int from, int to) {
  for (int i = from; i < to; i++) blocks[i] = calloc(1, kSize);
}

int main(void) {
  allocate(0, kBlocks / 2);
  expect(setlocale(LC_ALL, "C.UTF-8") != NULL);
  allocate(kBlocks / 2, kBlocks);
  const double begin = omp_get_wtime();
  for (int round = 0; omp_get_wtime() < begin + 0.3; round++) {
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < kBlocks; i++) memset(blocks[i], round, kSize);
  }
  printf("%s\n", setlocale(LC_ALL, NULL));
  return expect_result();
}
