/* SPDX-License-Identifier: Apache-2.0
 * An ordered loop whose threads have single iterations one after the other, and little more to do
 * than in their turns: some print what all before have come to. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? atoi(argv[1]) : 300;
  const int every = iterations / 100 + 1;
  double sum = 0;
#pragma omp parallel for ordered schedule(static, 1)
  for (int i = 0; i < iterations; ++i) {
    const double own = 1.0 / (1 + i % 1000);
#pragma omp ordered
    {
      sum = 0.999 * sum + own;
      if (i % every == 0) printf("%d: %.9g\n", i, sum);
    }
  }
  printf("%d iterations: %.9g\n", iterations, sum);
  return 0;
}
