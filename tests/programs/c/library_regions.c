// SPDX-License-Identifier: Apache-2.0
// Proves: regions, globals and threadprivate variables inside a shared library work like the
// program's.
#include <omp.h>

#include "expect.h"

extern int team_calls;
extern const char* team_name;
long team_sum(const int* values, int count);
void team_fill(int* values, int count, int (*make)(int));
int team_threadprivate(int add);

static int make(int i) { return i * 5 % 17; }

int main(void) {
  static int values[2000];
  team_fill(values, 2000, make);
  long expected = 0;
  for (int i = 0; i < 2000; i++) expected += make(i);
  for (int round = 0; round < 3; round++) expect(team_sum(values, 2000) == expected);
  long inside = 0;
#pragma omp parallel num_threads(4) reduction(+ : inside)
  inside += team_threadprivate(omp_get_thread_num());
  printf("%s %ld %d %ld\n", team_name, expected, team_calls, inside);
  expect(team_calls == 4 && inside == 4 * 100 + 6);
  return expect_result();
}
