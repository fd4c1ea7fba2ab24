// SPDX-License-Identifier: Apache-2.0
// Proves: what any thread has printed before a barrier, explicit or at the end of a construct,
// comes before what any other prints after it: without flushing, with begun lines, with write(2).
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 12

static void print(int round, const char* what, int thread) {
  char text[60];
  const int length = snprintf(text, sizeof text, "%d %s %d\n", round, what, thread);
  if (round % 3 == 1) {
    fflush(stdout);
    if (write(STDOUT_FILENO, text, (size_t)length) != length) _exit(9);
  } else {
    fputs(text, stdout);
  }
}

int main(void) {
  long sum = 0;
#pragma omp parallel num_threads(THREADS)
  for (int round = 0; round < ROUNDS; round++) {
    const int me = omp_get_thread_num();
    // From the last thread to the first, and from the first to the last.
    for (int turn = 0; turn < THREADS; turn++) {
      if (me == THREADS - 1 - turn) print(round, "down", me);
#pragma omp barrier
    }
#pragma omp for schedule(static, 1) reduction(+ : sum)
    for (int i = 0; i < THREADS; i++) {
      sum += i;
      if (i == round % THREADS) print(round, "loop", i);
    }
#pragma omp single
    print(round, "single", 0);
    if (me == (round * 5) % THREADS) printf("%d begun by %d,", round, me);
#pragma omp barrier
    if (me == (round * 3) % THREADS) printf(" ended by %d\n", me);
#pragma omp barrier
    // As seen by others than the origin: a third node after a second one.
    for (int turn = 0; turn < THREADS; turn++) {
      if (me == (turn * 3) % THREADS) print(round, "mixed", me);
#pragma omp barrier
    }
  }
  printf("%ld\n", sum);
  return 0;
}
