// SPDX-License-Identifier: Apache-2.0
// Proves: a heap array of 256 MiB of which each thread touches its part; what nobody touched is
// zero.
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

int main(void) {
  size_t count = 256u << 20;
  unsigned char* bytes = calloc(count, 1);
  expect(bytes != NULL);
  if (bytes == NULL) return expect_result();
  size_t stride = 1u << 20;
#pragma omp parallel for num_threads(4)
  for (size_t at = 0; at < count; at += stride) bytes[at] = (unsigned char)(at / stride + 1);
  long sum = 0;
  for (size_t at = 0; at < count; at += stride) sum += bytes[at] + bytes[at + 4096];
  long expected = 0;
  for (size_t i = 0; i < count / stride; i++) expected += (unsigned char)(i + 1);
  printf("%ld\n", sum);
  expect(sum == expected);
  free(bytes);
  return expect_result();
}
