// SPDX-License-Identifier: Apache-2.0
// Proves: a library that is opened by dlopen after regions ran is used by later regions, or
// refused clearly.
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int make(int i) { return i % 3; }

int main(int argc, char** argv) {
  (void)argc;
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += 1;
  char path[PATH_MAX + 32], program[PATH_MAX];
  if (realpath(argv[0], program) == NULL) return 3;
  snprintf(path, sizeof path, "%s/libteam_library.so", dirname(program));
  void* library = dlopen(path, RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 3;
  }
  long (*team_sum)(const int*, int) = (long (*)(const int*, int))dlsym(library, "team_sum");
  void (*team_fill)(int*, int, int (*)(int)) =
      (void (*)(int*, int, int (*)(int)))dlsym(library, "team_fill");
  int* calls = (int*)dlsym(library, "team_calls");
  static int values[900];
  team_fill(values, 900, make);
  printf("%d %ld %d\n", sum, team_sum(values, 900), *calls);
  expect(*calls == 2);
  return expect_result();
}
