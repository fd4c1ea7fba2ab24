// SPDX-License-Identifier: Apache-2.0
// Proves: a task outside of regions may fork one that uses what the task has captured, which the
// OpenMP runtime keeps.
#include <omp.h>

#include "expect.h"

enum { kNumbers = 1000 };

struct Line {
  int first, step;
};

static long fill(struct Line line) {
  int numbers[kNumbers], wrong = 0;
  long sum = 0;
#pragma omp task shared(numbers, wrong) firstprivate(line)
  {
#pragma omp parallel for
    for (int i = 0; i < kNumbers; ++i) numbers[i] = line.first + i * line.step;
#pragma omp parallel for reduction(+ : wrong)
    for (int i = 0; i < kNumbers; ++i) wrong += numbers[i] != line.first + i * line.step;
  }
#pragma omp taskwait
  expect(wrong == 0);
#pragma omp taskloop num_tasks(2) shared(sum) firstprivate(line)
  for (int half = 0; half < 2; ++half) {
    long part = 0;
#pragma omp parallel for reduction(+ : part)
    for (int i = half; i < kNumbers; i += 2) part += numbers[i] - line.first;
#pragma omp atomic
    sum += part;
  }
  return sum;
}

int main(void) {
  printf("%ld %ld\n", fill((struct Line){5, 3}), fill((struct Line){-7, 2}));
  return expect_result();
}
