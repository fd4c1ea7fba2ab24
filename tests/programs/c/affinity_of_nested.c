// SPDX-License-Identifier: Apache-2.0
// What the affinity format tells of threads in nested regions: their number and their team's size
// there, the level, and the number of the thread above them, in the whole team where that is the
// outermost one. The same as the calls that ask for these say.
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { kOuter = 6, kInner = 2, kLength = 80 };
static char lines[kOuter][kInner][2][kLength];
static int agreed[kOuter][kInner];

static void note(int outer, int inner, int round) {
  char text[kLength], asked[kLength];
  omp_capture_affinity(text, sizeof text, "%L: %n of %N, below %{ancestor_tnum}");
  const int level = omp_get_level();
  snprintf(asked, sizeof asked, "%d: %d of %d, below %d", level, omp_get_thread_num(),
           omp_get_num_threads(), omp_get_ancestor_thread_num(level - 1));
  agreed[outer][inner] += strcmp(text, asked) == 0;
  strcpy(lines[outer][inner][round], text);
}

int main(void) {
  omp_set_max_active_levels(3);
#pragma omp parallel num_threads(kOuter)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(kInner)
    {
      const int inner = omp_get_thread_num();
      note(outer, inner, 0);
#pragma omp parallel num_threads(2)
      {
        if (omp_get_thread_num() == 1) note(outer, inner, 1);
      }
    }
  }
  for (int outer = 0; outer < kOuter; ++outer) {
    for (int inner = 0; inner < kInner; ++inner) {
      printf("%d %d agrees %d times: %s; %s\n", outer, inner, agreed[outer][inner],
             lines[outer][inner][0], lines[outer][inner][1]);
    }
  }
  return 0;
}
