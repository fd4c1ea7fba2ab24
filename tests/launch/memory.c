// SPDX-License-Identifier: Apache-2.0
// memory MIB BLOCKS: main fills MIB megabytes in so many blocks, regions change them all, and main
// looks at each word. Prints a sum that says whether every word was right.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 2 };

static uint64_t first_value(long block, long i) {
  return (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)block;
}

static uint64_t changed(uint64_t value, long i) { return value * 31 + (uint64_t)i; }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long blocks = atol(argv[2]), words = atol(argv[1]) * 131072 / blocks;
  uint64_t** block = malloc((size_t)blocks * sizeof *block);
  for (long b = 0; b < blocks; b++) {
    block[b] = malloc((size_t)words * sizeof **block);
    if (block[b] == NULL) return 3;
    for (long i = 0; i < words; i++) block[b][i] = first_value(b, i);
  }
  for (int round = 0; round < kRounds; round++) {
    for (long b = 0; b < blocks; b++) {
      uint64_t* const values = block[b];
#pragma omp parallel for schedule(static)
      for (long i = 0; i < words; i++) values[i] = changed(values[i], i);
    }
  }
  uint64_t sum = 0;
  long wrong = 0;
  for (long b = 0; b < blocks; b++) {
    for (long i = 0; i < words; i++) {
      uint64_t expected = first_value(b, i);
      for (int round = 0; round < kRounds; round++) expected = changed(expected, i);
      wrong += block[b][i] != expected;
      sum = sum * 7 + block[b][i];
    }
    free(block[b]);
  }
  free(block);
  printf("%ld wrong, sum %llu\n", wrong, (unsigned long long)sum);
  return wrong != 0;
}
