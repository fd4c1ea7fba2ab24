// SPDX-License-Identifier: Apache-2.0
// Proves: memory that each thread allocates is read, resized and freed by the serial part.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

int main(void) {
  char* texts[4][10];
#pragma omp parallel num_threads(4)
  {
    int me = omp_get_thread_num();
    for (int i = 0; i < 10; i++) {
      texts[me][i] = malloc(32);
      snprintf(texts[me][i], 32, "thread %d item %d", me, i);
    }
  }
  for (int me = 0; me < 4; me++)
    for (int i = 0; i < 10; i++) {
      texts[me][i] = realloc(texts[me][i], 3000);
      memset(texts[me][i] + 32, '.', 100);
      char expected[32];
      snprintf(expected, sizeof expected, "thread %d item %d", me, i);
      expect(strcmp(texts[me][i], expected) == 0);
      if (i == 9) puts(texts[me][i]);
      free(texts[me][i]);
    }
  return expect_result();
}
