// SPDX-License-Identifier: Apache-2.0
// Proves: a library may register conversions of printf when it is loaded, as libquadmath does. What
// the C library keeps of them lies among the program's memory if it is taken for that, and threads
// of the runtime, which print as well, wait for pages that they themselves would have to fetch.
// UCX prints at each look at its peers: the manifest has it look a thousand times a second.
#define _GNU_SOURCE
#include <omp.h>
#include <printf.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { kBlocks = 400, kSize = 1000 };
static char* blocks[kBlocks];

static void allocate(int from, int to) {
  for (int i = from; i < to; i++) blocks[i] = calloc(1, kSize);
}

static int print_twice(FILE* stream, const struct printf_info* info, const void* const* arguments) {
  (void)info;
  const int number = *(const int*)arguments[0];
  return fprintf(stream, "%d %d", number, number);
}

static int describe(const struct printf_info* info, size_t count, int* types, int* sizes) {
  (void)info;
  if (count > 0) types[0] = PA_INT, sizes[0] = sizeof(int);
  return 1;
}

// Before main, as a library's: on each node.
__attribute__((constructor)) static void begin(void) {
  allocate(0, kBlocks / 2);
  register_printf_specifier('Y', print_twice, describe);
  register_printf_modifier(L"W");
  allocate(kBlocks / 2, kBlocks);
}

int main(void) {
  const double begin = omp_get_wtime();
  for (int round = 0; omp_get_wtime() < begin + 0.3; round++) {
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < kBlocks; i++) memset(blocks[i], round, kSize);
  }
  const char* const format = "%Y, %s\n";  // no warning: it is no literal
  printf(format, 7, "and all is well");
  return expect_result();
}
