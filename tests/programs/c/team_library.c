// SPDX-License-Identifier: Apache-2.0
// Proves: nothing by itself: the shared library of library_regions.c and library_opened.c.
#include <omp.h>
#include <stdlib.h>

int team_calls;
const char* team_name = "team library";
static int per_thread = 100;
#pragma omp threadprivate(per_thread)

long team_sum(const int* values, int count) {
  long sum = 0;
  team_calls++;
#pragma omp parallel for num_threads(4) schedule(dynamic, 100) reduction(+ : sum)
  for (int i = 0; i < count; i++) sum += values[i];
  return sum;
}

void team_fill(int* values, int count, int (*make)(int)) {
  int* scratch = malloc((size_t)count * sizeof *scratch);
  team_calls++;
#pragma omp parallel num_threads(4)
  {
#pragma omp for
    for (int i = 0; i < count; i++) scratch[i] = make(i);
#pragma omp for
    for (int i = 0; i < count; i++) values[i] = scratch[i];
  }
  free(scratch);
}

int team_threadprivate(int add) { return per_thread += add; }
