// SPDX-License-Identifier: Apache-2.0
// Proves: a forked child finds in its memory what the program has written, on whichever node:
// globals that were never touched since the start, heap of the main program and of the threads,
// and stacks; and what it writes itself stays its own.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { kThreads = 4, kCount = 300000, kTable = 40000 };

static long untouched[kTable] = {[0] = 11, [kTable / 2] = 13, [kTable - 1] = 17};
static long zeroes[kTable];
static long written[kTable];
static long* blocks[kThreads];

static int run_child(int (*body)(void)) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(body());
  expect(child > 0);
  int status = 0;
  expect(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status)) printf("the child was ended by signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long* heap;

static int read_all(void) {
  int wrong = 0;
  for (long i = 0; i < kCount; i++) wrong += heap[i] != 3 * i;
  if (wrong != 0) return 1;
  for (long i = 0; i < kTable; i++) wrong += written[i] != i + 1 || zeroes[i] != 0;
  if (wrong != 0) return 2;
  if (untouched[0] != 11 || untouched[kTable / 2] != 13 || untouched[kTable - 1] != 17) return 3;
  for (int thread = 0; thread < kThreads; thread++) {
    for (long i = 0; i < kCount / kThreads; i++) wrong += blocks[thread][i] != thread + i;
  }
  if (wrong != 0) return 4;
  for (long i = 0; i < kCount; i++) heap[i] = -1;
  blocks[kThreads - 1][0] = -1;
  untouched[0] = -1;
  return 42;
}

int main(void) {
  heap = malloc(kCount * sizeof *heap);
  for (long i = 0; i < kCount; i++) heap[i] = i;
#pragma omp parallel num_threads(kThreads)
  {
    const int me = omp_get_thread_num();
#pragma omp for
    for (long i = 0; i < kCount; i++) heap[i] *= 3;
#pragma omp for
    for (long i = 0; i < kTable; i++) written[i] = i + 1;
    blocks[me] = malloc(kCount / kThreads * sizeof(long));
    for (long i = 0; i < kCount / kThreads; i++) blocks[me][i] = me + i;
  }
  expect(run_child(read_all) == 42);
  expect(heap[7] == 21 && blocks[kThreads - 1][0] == kThreads - 1 && untouched[0] == 11);
  int in_region = 0;
#pragma omp parallel num_threads(kThreads)
  {
    if (omp_get_thread_num() == 0) in_region = run_child(read_all);
#pragma omp barrier
    if (in_region != 42) expect(!"a child of a thread in a region");
  }
  expect(system("exit 3") == 3 << 8);
  return expect_result();
}
