// SPDX-License-Identifier: Apache-2.0
// Proves: threads the program made itself work beside regions, on the origin.
#include <omp.h>
#include <pthread.h>

#include "expect.h"

static long results[3];

static void* work(void* argument) {
  long which = (long)argument, sum = 0;
  for (long i = 0; i < 1000; i++) sum += i * (which + 1);
  results[which] = sum;
  return argument;
}

int main(void) {
  pthread_t threads[3];
  long total = 0;
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, (void*)i);
#pragma omp parallel for num_threads(4) reduction(+ : total)
  for (int i = 0; i < 1000; i++) total += i;
  for (long i = 0; i < 3; i++) {
    void* back = NULL;
    expect(pthread_join(threads[i], &back) == 0 && (long)back == i);
    expect(results[i] == 499500 * (i + 1));
  }
#pragma omp parallel for num_threads(4) reduction(+ : total)
  for (int i = 0; i < 1000; i++) total += i;
  printf("%ld\n", total);
  expect(total == 999000);
  return expect_result();
}
