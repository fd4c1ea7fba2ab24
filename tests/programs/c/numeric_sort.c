// SPDX-License-Identifier: Apache-2.0
// Proves: a merge sort by tasks and by nested halves sorts.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { kCount = 20000 };
static int values[kCount], scratch[kCount];

static void merge_sort(int low, int high) {
  if (high - low < 2) return;
  int middle = low + (high - low) / 2;
#pragma omp task if (high - low > 2000)
  merge_sort(low, middle);
#pragma omp task if (high - low > 2000)
  merge_sort(middle, high);
#pragma omp taskwait
  int left = low, right = middle;
  for (int i = low; i < high; i++) {
    int take_left = left < middle && (right >= high || values[left] <= values[right]);
    scratch[i] = take_left ? values[left++] : values[right++];
  }
  memcpy(values + low, scratch + low, (size_t)(high - low) * sizeof(int));
}

int main(void) {
  unsigned state = 12345;
  long sum = 0;
  for (int i = 0; i < kCount; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (int)(state >> 8);
    sum += values[i];
  }
#pragma omp parallel num_threads(4)
#pragma omp single
  merge_sort(0, kCount);
  long after = values[0];
  for (int i = 1; i < kCount; i++) {
    if (values[i - 1] > values[i]) expect(!"sorted");
    after += values[i];
  }
  printf("%d %d %ld\n", values[0], values[kCount - 1], sum);
  expect(after == sum);
  return expect_result();
}
