// SPDX-License-Identifier: Apache-2.0
// Proves: locks inside heap objects, set by one thread and freed by another.
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

struct Account {
  omp_lock_t lock;
  long balance;
};

int main(void) {
  struct Account* accounts[8];
  for (int i = 0; i < 8; i++) {
    accounts[i] = malloc(sizeof *accounts[i]);
    omp_init_lock(&accounts[i]->lock);
    accounts[i]->balance = 1000;
  }
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 30; round++) {
    int from = (omp_get_thread_num() + round) % 8, to = (from * 3 + 1) % 8;
    if (from == to) continue;
    int low = from < to ? from : to, high = from < to ? to : from;
    omp_set_lock(&accounts[low]->lock);
    omp_set_lock(&accounts[high]->lock);
    accounts[from]->balance -= 7;
    accounts[to]->balance += 7;
    omp_unset_lock(&accounts[high]->lock);
    omp_unset_lock(&accounts[low]->lock);
  }
  long sum = 0;
  for (int i = 0; i < 8; i++) {
    sum += accounts[i]->balance;
    printf("%ld\n", accounts[i]->balance);
    omp_destroy_lock(&accounts[i]->lock);
    free(accounts[i]);
  }
  expect(sum == 8000);
  return expect_result();
}
