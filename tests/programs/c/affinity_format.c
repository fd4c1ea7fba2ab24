// SPDX-License-Identifier: Apache-2.0
// omp_set_affinity_format reaches every thread of the team, and the fields for thread and team are
// those of the whole team. (What host, process and cores a thread has is up to where it runs.)
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { kMost = 64, kLength = 80 };
static char lines[3][kMost][kLength];

static void capture(int round, const char* format) {
#pragma omp parallel num_threads(8)
  {
    char text[200];
    size_t needed = omp_capture_affinity(text, sizeof text, format);
    snprintf(lines[round][omp_get_thread_num()], kLength, "%s (%zu)", text, needed);
  }
}

int main(void) {
  char set[100];
  omp_set_affinity_format("thread %0.3n of %{num_threads}, level %L");
  size_t needed = omp_get_affinity_format(set, sizeof set);
  printf("%s (%zu)\n", set, needed);
  capture(0, NULL);
  capture(1, "[%.4{thread_num}|%4n|%N] 100%%");
  omp_set_affinity_format("now %n");
  capture(2, "");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) printf("%d: %s\n", i, lines[round][i]);
  }
  // A buffer that is too small gets what fits, and the length that all would have.
  char small[4];
  needed = omp_capture_affinity(small, sizeof small, "abcdefgh");
  printf("%s (%zu)\n", small, needed);
  return 0;
}
