// SPDX-License-Identifier: Apache-2.0
// Proves: lambdas and std::function objects with captures, called on every thread.
#include <omp.h>

#include <functional>
#include <string>
#include <vector>

#include "../c/expect.h"

int main() {
  int base = 5;
  std::string text = "captured text that is longer than the small buffer";
  std::vector<std::function<long(int)>> functions;
  functions.emplace_back([base](int x) { return static_cast<long>(x) + base; });
  functions.emplace_back([&text](int x) { return x + static_cast<long>(text.size()); });
  functions.emplace_back([text, base](int x) { return x * base + (text[0] == 'c'); });
  long results[4] = {0};
  auto add = [&](int thread) {
    for (auto& function : functions) results[thread] += function(thread);
  };
#pragma omp parallel num_threads(4)
  {
    add(omp_get_thread_num());
#pragma omp barrier
#pragma omp single
    functions.emplace_back([](int x) { return 1000L * x; });
    results[omp_get_thread_num()] += functions.back()(omp_get_thread_num());
  }
  for (int i = 0; i < 4; i++) {
    printf("%ld\n", results[i]);
    expect(results[i] == i + 5 + i + 50 + 5 * i + 1 + 1000 * i);
  }
  return expect_result();
}
