// SPDX-License-Identifier: Apache-2.0
// Proves: library calls that allocate or write through pointers work on any thread: strdup,
// asprintf, qsort.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(void) {
  char* texts[4];
  int rows[4][50];
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    int me = omp_get_thread_num();
    char* copy = strdup("one,two,three");
    char* rest = NULL;
    int words = 0;
    for (char* word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) words++;
    wrong += words != 3;
    free(copy);
    if (asprintf(&texts[me], "%s %d %.3f %c", "text", me, me / 8.0, 'a' + me) < 0) wrong++;
    for (int i = 0; i < 50; i++) rows[me][i] = (i * 37 + me) % 101;
    qsort(rows[me], 50, sizeof(int), by_value);
    for (int i = 1; i < 50; i++) wrong += rows[me][i - 1] > rows[me][i];
    int key = rows[me][20];
    int* found = bsearch(&key, rows[me], 50, sizeof(int), by_value);
    wrong += found == NULL || *found != key;
    wrong += strtol("-1234", NULL, 10) != -1234 || strtod("2.5e3", NULL) != 2500.0;
  }
  for (int i = 0; i < 4; i++) {
    puts(texts[i]);
    free(texts[i]);
  }
  expect(wrong == 0);
  return expect_result();
}
