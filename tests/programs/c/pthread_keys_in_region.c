// SPDX-License-Identifier: Apache-2.0
// Proves: a key of thread-specific data is one for all threads, whichever of them made it, and
// each has its own value; a number that is used again begins without values.
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "expect.h"

static pthread_key_t by_main, by_last, by_once;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int destroyed;

static void make_key(void) { pthread_key_create(&by_once, free); }
static void count(void* value) {
  (void)value;
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}
static void* set_and_end(void* value) { return pthread_setspecific(by_main, value) ? NULL : value; }

static int set_and_look(pthread_key_t key, int* value) {
  if (pthread_getspecific(key) != NULL || pthread_setspecific(key, value) != 0) return 1;
#pragma omp barrier
  return pthread_getspecific(key) != value;
}

int main(void) {
  static int values[4];
  int wrong = 0;
  tss_t standard;
  expect(pthread_key_create(&by_main, count) == 0 && tss_create(&standard, NULL) == thrd_success);
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    const int self = omp_get_thread_num();
    if (self == 3) wrong += pthread_key_create(&by_last, NULL) != 0;
#pragma omp barrier
    wrong += set_and_look(by_main, &values[self]) + set_and_look(by_last, &values[self]);
    pthread_once(&once, make_key);
    int* const mine = malloc(sizeof *mine);
    wrong += set_and_look(by_once, mine);
    wrong += tss_set(standard, mine) != thrd_success || tss_get(standard) != mine;
#pragma omp barrier
    if (self == 2) {
      wrong += pthread_key_delete(by_last) != 0 || pthread_setspecific(by_last, mine) == 0;
      wrong += pthread_key_create(&by_last, NULL) != 0;
    }
#pragma omp barrier
    wrong += set_and_look(by_last, &values[self]);
    free(mine);
    pthread_setspecific(by_once, NULL);
  }
  pthread_t thread;
  void* ended = NULL;
  expect(pthread_create(&thread, NULL, set_and_end, &wrong) == 0);
  expect(pthread_join(thread, &ended) == 0 && ended == &wrong && destroyed == 1);
  printf("%d\n", wrong);
  expect(wrong == 0);
  return expect_result();
}
