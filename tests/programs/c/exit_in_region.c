// SPDX-License-Identifier: Apache-2.0
// Proves: a program ends with its exit code when a thread of a region ends it, on the first node
// (argument 2: 0) or on the last (3), and runs the handlers that the way to end (argument 1) has.
// exit_at_begin: while other threads may be on their way into the region. Nothing is said on
// standard error.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int handled;

static void at_exit(void) {
  printf("exit, handled %d\n", ++handled);
  fflush(stdout);
}

static void at_quick(void) {
  printf("quick_exit, handled %d\n", ++handled);
  fflush(stdout);
}

int main(int count, char** values) {
  if (count != 3) return 1;
  const char* way = values[1];
  const int who = atoi(values[2]);
  atexit(at_exit);
  at_quick_exit(at_quick);
  printf("before\n");
  fflush(stdout);
#pragma omp parallel num_threads(4)
  {
    if (omp_get_thread_num() == who && strcmp(way, "exit_at_begin") == 0) exit(21);
#pragma omp barrier
    // The others wait for a barrier that never comes.
    if (omp_get_thread_num() == who) {
      if (strcmp(way, "exit") == 0) exit(21);
      if (strcmp(way, "_Exit") == 0) _Exit(22);
      if (strcmp(way, "_exit") == 0) _exit(23);
      if (strcmp(way, "quick_exit") == 0) quick_exit(24);
    }
#pragma omp barrier
  }
  printf("never printed\n");
  return 0;
}
