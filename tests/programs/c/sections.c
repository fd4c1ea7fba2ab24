// SPDX-License-Identifier: Apache-2.0
// Proves: each section runs once, with fewer, as many and more sections than threads.
#include <omp.h>

#include "expect.h"

int main(void) {
  int hits[8] = {0}, last = 0, sum = 0;
#pragma omp parallel sections num_threads(4)
  {
#pragma omp section
    hits[0]++;
#pragma omp section
    hits[1]++;
  }
#pragma omp parallel num_threads(2)
  {
#pragma omp sections lastprivate(last) reduction(+ : sum)
    {
#pragma omp section
      {
        hits[2]++;
        last = 1;
        sum += 10;
      }
#pragma omp section
      {
        hits[3]++;
        last = 2;
        sum += 20;
      }
#pragma omp section
      {
        hits[4]++;
        last = 3;
        sum += 30;
      }
#pragma omp section
      {
        hits[5]++;
        last = 4;
        sum += 40;
      }
    }
#pragma omp sections nowait
    {
#pragma omp section
      hits[6]++;
#pragma omp section
      hits[7]++;
    }
  }
  for (int i = 0; i < 8; i++) expect(hits[i] == 1);
  printf("%d %d\n", last, sum);
  expect(last == 4 && sum == 100);
  return expect_result();
}
