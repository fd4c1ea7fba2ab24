// SPDX-License-Identifier: Apache-2.0
// Proves: initialised data, zeroed data, static locals and tables of pointers are the same on all
// nodes.
#include <omp.h>
#include <string.h>

#include "expect.h"

int exported = 42;
static const char* const kNames[] = {"zero", "one", "two", "three"};
static const char* changing[] = {"a", "b", "c", "d"};
static double zeroed[5000];
static struct {
  int id;
  const int* where;
} records[4] = {{1, &exported}, {2, &exported}, {3, &exported}, {4, NULL}};

static int next_ticket(void) {
  static int ticket = 500;
  int mine;
#pragma omp atomic capture
  mine = ticket++;
  return mine;
}

int main(void) {
  int wrong = 0, tickets = 0;
  exported = 43;
  changing[2] = kNames[2];
#pragma omp parallel num_threads(4) reduction(+ : wrong, tickets)
  {
    int me = omp_get_thread_num();
    wrong += exported != 43 || strcmp(changing[2], "two") != 0 || zeroed[4999] != 0;
    wrong += records[me].id != me + 1 || (me < 3 && *records[me].where != 43);
    for (int i = 0; i < 10; i++) tickets += next_ticket();
    zeroed[me * 1024] = me + 0.5;
#pragma omp barrier
    wrong += zeroed[((me + 1) % 4) * 1024] != (me + 1) % 4 + 0.5;
#pragma omp single
    changing[3] = kNames[0];
    wrong += changing[3] != kNames[0];
  }
  printf("%d %d\n", wrong, tickets);
  expect(wrong == 0 && tickets == 40 * 500 + 780);
  return expect_result();
}
