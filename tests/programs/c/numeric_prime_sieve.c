// SPDX-License-Identifier: Apache-2.0
// Proves: a sieve whose marks are shared bytes finds the primes.
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

int main(void) {
  int limit = 200000;
  char* composite = calloc((size_t)limit + 1, 1);
  for (int p = 2; p * p <= limit; p++) {
    if (composite[p]) continue;
#pragma omp parallel for num_threads(4) schedule(static) if (p < 50)
    for (int k = p * p; k <= limit; k += p) composite[k] = 1;
  }
  int count = 0;
  long sum = 0;
#pragma omp parallel for num_threads(4) schedule(guided) reduction(+ : count, sum)
  for (int i = 2; i <= limit; i++)
    if (!composite[i]) {
      count++;
      sum += i;
    }
  free(composite);
  printf("%d %ld\n", count, sum);
  expect(count == 17984);
  return expect_result();
}
