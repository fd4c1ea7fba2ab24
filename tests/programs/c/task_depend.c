// SPDX-License-Identifier: Apache-2.0
// Proves: tasks obey in, out, inout and mutexinoutset dependences.
#include <omp.h>

#include "expect.h"

int main(void) {
  int a = 0, b = 0, c = 0, d = 0, sum = 0;
  unsigned chain = 1;
#pragma omp parallel num_threads(4)
#pragma omp single
  {
#pragma omp task depend(out : a)
    a = 5;
#pragma omp task depend(in : a) depend(out : b)
    b = a * 2;
#pragma omp task depend(in : a) depend(out : c)
    c = a * 3;
#pragma omp task depend(in : b, c) depend(out : d)
    d = b + c;
    for (int i = 0; i < 20; i++) {
#pragma omp task depend(inout : chain) firstprivate(i)
      chain = chain * 3 + (unsigned)i;
    }
    for (int i = 0; i < 20; i++) {
#pragma omp task depend(mutexinoutset : sum) firstprivate(i)
      sum += i;
    }
#pragma omp taskwait
  }
  unsigned serial = 1;
  for (int i = 0; i < 20; i++) serial = serial * 3 + (unsigned)i;
  printf("%d %d %d %d %d %d\n", a, b, c, d, chain == serial, sum);
  expect(d == 25 && chain == serial && sum == 190);
  return expect_result();
}
