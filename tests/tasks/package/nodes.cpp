// SPDX-License-Identifier: Apache-2.0
#include <amasia/nodes.hpp>
#include <cstdio>
#include <vector>

namespace nodes = amasia::nodes;
namespace tasks = amasia::tasks;

// How many numbers below `end`, from `begin`, have no divisor.
long count_primes(long begin, long end) {
  long primes = 0;
  for (long n = begin; n < end; ++n) {
    bool is_prime = n > 1;
    for (long d = 2; d * d <= n && is_prime; ++d) is_prime = n % d != 0;
    primes += is_prime;
  }
  return primes;
}

int main() {
  tasks::runtime workers;
  nodes::library job(workers);  // every node comes here
  job.run([] {                  // the origin alone does this
    for (unsigned n = 0; n < nodes::count(); ++n) {
      const auto answer = nodes::async_future_at(nodes::at(n), [n] { return 10 * n; });
      std::printf("node %u says %u\n", n, answer.get());
    }

    // Idle nodes take tasks that any may do.
    std::vector<nodes::future<long>> parts;
    for (long begin = 0; begin < 1'000'000; begin += 20'000) {
      parts.push_back(
          nodes::async_future_any([begin] { return count_primes(begin, begin + 20'000); }));
    }
    long primes = 0;
    for (const auto& part : parts) primes += part.get();
    std::printf("%ld primes\n", primes);

    try {
      tasks::finish([] {  // of tasks on all nodes, and of what they create
        nodes::async_at(nodes::at(nodes::count() - 1),
                        [] { throw std::runtime_error("a task failed"); });
      });
    } catch (const std::exception& failure) {
      std::printf("%s\n", failure.what());
    }
  });
}
