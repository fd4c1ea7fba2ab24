// SPDX-License-Identifier: Apache-2.0
// Proves: arguments, environment and working directory are those of a plain run, on every thread.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) printf("[%s]\n", argv[i]);
  char here[4096];
  expect(getcwd(here, sizeof here) != NULL);
  setenv("SET_BY_MAIN", "yes", 1);
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    char there[4096];
    wrong += getcwd(there, sizeof there) == NULL || strcmp(here, there) != 0;
    const char* given = getenv("GIVEN");
    wrong += given == NULL || strcmp(given, "a value") != 0;
    wrong += strcmp(argv[argc - 1], "last one") != 0;
  }
  printf("%d %s %s\n", wrong, getenv("GIVEN"), getenv("SET_BY_MAIN"));
  expect(wrong == 0);
  return expect_result();
}
