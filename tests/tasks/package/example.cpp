// SPDX-License-Identifier: Apache-2.0
#include <amasia/tasks.hpp>
#include <cstdio>
#include <numeric>
#include <vector>

namespace tasks = amasia::tasks;

// Sums halves as tasks of their own; waiting for one never blocks a core.
long sum(const long* first, const long* last) {
  if (last - first < 1000) return std::accumulate(first, last, 0L);
  const long* const middle = first + (last - first) / 2;
  const auto left = tasks::async_future([=] { return sum(first, middle); });
  const long right = sum(middle, last);
  return left.get() + right;
}

// A coroutine whose result is a future.
tasks::future<long> twice(tasks::future<long> value) { co_return 2 * co_await value; }

int main() {
  tasks::runtime workers({.workers = 2});
  workers.run([] {
    std::vector<long> numbers(100'000);
    tasks::forasync(0, 100'000, [&](std::ptrdiff_t i) { numbers[i] = i; });

    const auto total =
        tasks::async_future([&] { return sum(numbers.data(), numbers.data() + numbers.size()); });
    const auto doubled = twice(total);
    tasks::async_await([=] { std::printf("sum %ld\n", total.get()); }, total);
    std::printf("twice %ld\n", doubled.get());

    try {
      tasks::finish([] { tasks::async([] { throw std::runtime_error("a task failed"); }); });
    } catch (const std::exception& failure) {
      std::printf("%s\n", failure.what());
    }
  });
}
