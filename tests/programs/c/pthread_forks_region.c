// SPDX-License-Identifier: Apache-2.0
// Proves: a thread the program made itself forks regions of its own.
#include <omp.h>
#include <pthread.h>

#include "expect.h"

static void* work(void* argument) {
  long sum = 0;
  for (int round = 0; round < 5; round++) {
#pragma omp parallel for num_threads(4) reduction(+ : sum) schedule(dynamic, 10)
    for (int i = 0; i < 200; i++) sum += i;
  }
  *(long*)argument = sum;
  return NULL;
}

int main(void) {
  long one = 0, two = 0, three = 0;
  work(&one);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, work, &two);
  pthread_create(&threads[1], NULL, work, &three);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  printf("%ld %ld %ld\n", one, two, three);
  expect(one == 99500 && two == one && three == one);
  return expect_result();
}
