// SPDX-License-Identifier: Apache-2.0
// Proves: exceptions thrown in serial code unwind through functions that ran regions.
#include <omp.h>

#include <stdexcept>
#include <vector>

#include "../c/expect.h"

static long sum_or_throw(const std::vector<int>& values) {
  long sum = 0;
  bool negative = false;
#pragma omp parallel for num_threads(4) reduction(+ : sum) reduction(|| : negative)
  for (std::size_t i = 0; i < values.size(); i++) {
    sum += values[i];
    negative = negative || values[i] < 0;
  }
  if (negative) throw std::domain_error("negative");
  return sum;
}

int main() {
  std::vector<int> values(500, 2);
  int caught = 0;
  long sum = 0;
  for (int round = 0; round < 6; round++) {
    values[77] = round % 2 ? -1 : 2;
    try {
      sum += sum_or_throw(values);
    } catch (const std::domain_error&) {
      caught++;
    }
  }
  printf("%ld %d\n", sum, caught);
  expect(sum == 3000 && caught == 3);
  return expect_result();
}
