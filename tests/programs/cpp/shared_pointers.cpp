// SPDX-License-Identifier: Apache-2.0
// Proves: reference counts of shared pointers, which are inline atomics, stay right.
#include <omp.h>

#include <atomic>
#include <memory>
#include <vector>

#include "../c/expect.h"

static std::atomic<int> destroyed{0};
struct Payload {
  ~Payload() { destroyed++; }
  int value = 9;
};

int main() {
  long sum = 0;
  {
    auto common = std::make_shared<Payload>();
    std::vector<std::shared_ptr<Payload>> kept(4);
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
      for (int i = 0; i < 40; i++) {
        std::shared_ptr<Payload> copy = common;
        sum += copy->value;
      }
      kept[omp_get_thread_num()] = common;
    }
    printf("%ld %ld %d\n", sum, common.use_count(), destroyed.load());
    expect(common.use_count() == 5 && destroyed == 0);
  }
  expect(sum == 1440 && destroyed == 1);
  return expect_result();
}
