// SPDX-License-Identifier: Apache-2.0
// Proves: copyprivate of threadprivate scalars, arrays and structs, together with private variables
// and from whichever thread; afterwards each thread has a copy of its own.
#include <omp.h>
#include <string.h>

#include "expect.h"

struct record {
  long values[600];  // more than a page
  char name[20];
  double* data;
};

static int number;
static double table[50];
static struct record record;
#pragma omp threadprivate(number, table, record)

static void fill(int round, double* data) {
  number = round;
  for (int i = 0; i < 50; i++) table[i] = round + i;
  for (int i = 0; i < 600; i++) record.values[i] = round * 1000 + i;
  snprintf(record.name, sizeof record.name, "round %d", round);
  record.data = data;
}

static int is_filled(int round, const double* data) {
  char name[20];
  snprintf(name, sizeof name, "round %d", round);
  for (int i = 0; i < 50; i++) {
    if (table[i] != round + i) return 0;
  }
  for (int i = 0; i < 600; i++) {
    if (record.values[i] != round * 1000 + i) return 0;
  }
  return number == round && strcmp(record.name, name) == 0 && record.data == data;
}

int main(void) {
  static double data[4];
  int wrong = 0, executions = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong, executions)
  for (int round = 0; round < 16; round++) {
    long row[30] = {0};
    const int me = omp_get_thread_num();
    double* where = NULL;
#pragma omp single copyprivate(number, table, record, row, where)
    {
      executions++;
      fill(round, data);
      for (int i = 0; i < 30; i++) row[i] = round - i;
      where = &data[round % 4];
    }
    wrong += !is_filled(round, data) || row[29] != round - 29 || where != &data[round % 4];
    // Copies: what a thread changes now is its own.
    table[7] = record.values[599] = me;
#pragma omp barrier
    wrong += table[7] != me || record.values[599] != me;
#pragma omp barrier
  }
  printf("%d %d\n", executions, wrong);
  expect(executions == 16 && wrong == 0);
  return expect_result();
}
