// SPDX-License-Identifier: Apache-2.0
// Proves: a pthread mutex of the program excludes the threads of a region.
#include <omp.h>
#include <pthread.h>

#include "expect.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;

int main(void) {
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 20; round++) {
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
  }
  printf("%d\n", counter);
  expect(counter == 80);
  return expect_result();
}
