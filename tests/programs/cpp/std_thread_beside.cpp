// SPDX-License-Identifier: Apache-2.0
// Proves: std::thread, mutex and condition variable beside regions, all on the origin.
#include <omp.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../c/expect.h"

int main() {
  std::mutex mutex;
  std::condition_variable changed;
  int stage = 0;
  long from_thread = 0;
  std::thread partner([&] {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return stage == 1; });
    for (int i = 0; i < 100; i++) from_thread += i;
    stage = 2;
    changed.notify_all();
  });
  long sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 100; i++) sum += i;
  {
    std::unique_lock<std::mutex> lock(mutex);
    stage = 1;
    changed.notify_all();
    changed.wait(lock, [&] { return stage == 2; });
  }
  partner.join();
  printf("%ld %ld\n", sum, from_thread);
  expect(sum == 4950 && from_thread == 4950);
  return expect_result();
}
