// SPDX-License-Identifier: Apache-2.0
// Question: what does memory that is read again and again cost on two nodes, after it was fetched
// once? Serial code fills two million doubles, then forty regions add them up. Half of the
// pages (2048) move to the other node in the first region, and none after it.
#include <omp.h>
#include <stdlib.h>

#include "verdict.h"

enum { kCount = 2000000, kRounds = 40 };

int main(void) {
  double* numbers = malloc(kCount * sizeof *numbers);
  for (int i = 0; i < kCount; i++) numbers[i] = i % 1000;
  double total = 0;
  double start = omp_get_wtime();
  for (int round = 0; round < kRounds; round++) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < kCount; i++) sum += numbers[i];
    total += sum;
  }
  double seconds = omp_get_wtime() - start;
  free(numbers);
  // 499.5 is the mean of 0..999; all sums are integers below 2^53, so any order is exact.
  return verdict(seconds, total, 499.5 * kCount * kRounds, 0);
}
