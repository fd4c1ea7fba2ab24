// SPDX-License-Identifier: Apache-2.0
// Proves: a variable that main sets is seen by threads of every node, and so is the time zone.
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

// The hour that all threads tell of the epoch; -1: they differ.
static int hour_of_epoch(void) {
  int least = 24, most = -1;
#pragma omp parallel num_threads(4) reduction(min : least) reduction(max : most)
  {
    const time_t epoch = 0;
    struct tm local;
    localtime_r(&epoch, &local);
    least = most = local.tm_hour;
  }
  return least == most ? least : -1;
}

static void set_zone(const char *zone) {
  if (zone == NULL) unsetenv("TZ");
  if (zone != NULL) setenv("TZ", zone, 1);
  tzset();
}

int main(void) {
  int wrong = 0;
  setenv("SET_BY_MAIN", "yes", 1);
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    const char* value = getenv("SET_BY_MAIN");
    wrong += value == NULL || strcmp(value, "yes") != 0;
  }
  printf("%d\n", wrong);
  expect(wrong == 0);

  set_zone("AAA-9");
  expect(hour_of_epoch() == 9);
  set_zone("BBB-3");
  expect(hour_of_epoch() == 3);
  set_zone(NULL);
  expect(hour_of_epoch() != -1);
  return expect_result();
}
