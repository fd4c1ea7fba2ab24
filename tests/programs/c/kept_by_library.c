// SPDX-License-Identifier: Apache-2.0
// Proves: what a library keeps for each thread is found again by the same thread of later teams of
// that size, wherever regions ran before it was kept: first in regions that are too brief to be
// shared, which leave it alone, then in the same ones or in one of their own.
#include <omp.h>
#include <string.h>

#include "expect.h"

enum { kThreads = 4, kRounds = 300 };

void library_name_thread(long its_number);
long library_name_of_thread(void);
long library_count_call(void);

static long found[kThreads], calls[kThreads];

// The same code whether it keeps anything or not.
static void brief(int names) {
#pragma omp parallel num_threads(kThreads)
  {
    const int me = omp_get_thread_num();
    if (names) library_name_thread(100 + me);
    found[me] = library_name_of_thread();
  }
}

static void counts(int rounds) {
  for (int round = 1; round <= rounds; round++) {
#pragma omp parallel num_threads(kThreads)
    calls[omp_get_thread_num()] = library_count_call();
    for (int i = 0; i < kThreads; i++) expect(calls[i] == round);
  }
}

static void expect_names(void) {
  for (int i = 0; i < kThreads; i++) expect(found[i] == 100 + i);
}

int main(int argc, char **argv) {
  const int names_in_brief = argc > 1 && strcmp(argv[1], "brief") == 0;
  for (int round = 0; round < kRounds; round++) {
    brief(0);
    for (int i = 0; i < kThreads; i++) expect(found[i] == -1);
  }
  if (names_in_brief) {
    brief(1);
  } else {
#pragma omp parallel num_threads(kThreads)
    library_name_thread(100 + omp_get_thread_num());
  }
  for (int round = 0; round < kRounds; round++) {
    brief(0);
    expect_names();
  }
  counts(20);
  double sum = 0;
#pragma omp parallel for num_threads(kThreads) reduction(+ : sum)
  for (int i = 0; i < 1000; i++) sum += i;
  expect(sum == 499500);
  brief(0);
  expect_names();
  return expect_result();
}
