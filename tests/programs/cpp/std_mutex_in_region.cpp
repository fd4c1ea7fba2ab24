// SPDX-License-Identifier: Apache-2.0
// Proves: std::mutex and std::atomic of the program work between the threads of a region.
#include <omp.h>

#include <atomic>
#include <mutex>

#include "../c/expect.h"

int main() {
  std::mutex mutex;
  std::atomic<long> tickets{0};
  int counter = 0;
#pragma omp parallel num_threads(4)
  for (int round = 0; round < 20; round++) {
    tickets.fetch_add(3);
    std::lock_guard<std::mutex> guard(mutex);
    counter++;
  }
  printf("%d %ld\n", counter, tickets.load());
  expect(counter == 80 && tickets == 240);
  return expect_result();
}
