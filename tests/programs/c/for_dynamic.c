// SPDX-License-Identifier: Apache-2.0
// Proves: dynamic loops of several chunk sizes run each iteration once, whoever takes it.
#include <omp.h>
#include <string.h>

#include "expect.h"

enum { kCount = 1000 };
static unsigned char visits[kCount];

static void check_visits(const char* what) {
  int wrong = 0;
  for (int i = 0; i < kCount; i++) wrong += visits[i] != 1;
  printf("%s: %d wrong\n", what, wrong);
  expect(wrong == 0);
  memset(visits, 0, sizeof visits);
}

int main(void) {
#pragma omp parallel for num_threads(4) schedule(dynamic)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("dynamic");
#pragma omp parallel for num_threads(4) schedule(dynamic, 7)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("dynamic, 7");
#pragma omp parallel for num_threads(4) schedule(dynamic, 5000)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("dynamic, 5000");
#pragma omp parallel for num_threads(4) schedule(monotonic : dynamic, 3)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("monotonic dynamic, 3");
#pragma omp parallel for num_threads(4) schedule(nonmonotonic : dynamic, 3)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("nonmonotonic dynamic, 3");
#pragma omp parallel for num_threads(4) schedule(guided)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("guided");
#pragma omp parallel for num_threads(4) schedule(guided, 10)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("guided, 10");
#pragma omp parallel for num_threads(4) schedule(auto)
  for (int i = 0; i < kCount; i++) __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);
  check_visits("auto");
  return expect_result();
}
