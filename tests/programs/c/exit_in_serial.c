// SPDX-License-Identifier: Apache-2.0
// Proves: exit() deep in serial code after regions runs the atexit handlers in order.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int sum;

static void first(void) { printf("first registered, sum %d\n", sum); }
static void second(void) { printf("second registered\n"); }

static void leave(int depth) {
  if (depth == 0) exit(17);
  leave(depth - 1);
  printf("never printed\n");
}

int main(void) {
  atexit(first);
  atexit(second);
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  leave(10);
  return 0;
}
