// SPDX-License-Identifier: Apache-2.0
// Proves: loops over random-access iterators and pointers, up and down.
#include <omp.h>

#include <deque>
#include <vector>

#include "../c/expect.h"

int main() {
  std::vector<int> numbers(1000);
  std::deque<long> queue(300, 2);
#pragma omp parallel for num_threads(4)
  for (auto it = numbers.begin(); it < numbers.end(); ++it)
    *it = static_cast<int>(it - numbers.begin());
  long sum = 0, product = 0, back = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum) schedule(dynamic, 9)
  for (int* p = numbers.data(); p < numbers.data() + 1000; p += 2) sum += *p;
#pragma omp parallel for num_threads(4) reduction(+ : product) schedule(guided)
  for (auto it = queue.begin(); it != queue.end(); ++it) product += *it * 3;
#pragma omp parallel for num_threads(4) reduction(+ : back)
  for (auto it = numbers.rbegin(); it < numbers.rend(); it += 10) back += *it;
#pragma omp parallel for num_threads(4) reduction(+ : back)
  for (int& number : numbers) back += number % 2;
  printf("%ld %ld %ld\n", sum, product, back);
  expect(sum == 249500 && product == 1800 && back == 50400 + 500);
  return expect_result();
}
