// SPDX-License-Identifier: Apache-2.0
// Proves: declared reductions over classes that own heap memory: vectors and strings.
#include <omp.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../c/expect.h"

using Numbers = std::vector<int>;

#pragma omp declare reduction(join : Numbers : omp_out.insert( \
        omp_out.end(), omp_in.begin(), omp_in.end()))
#pragma omp declare reduction(longest : std::string : omp_out = \
        omp_in.size() > omp_out.size() ? omp_in : omp_out)

int main() {
  Numbers odd;
  std::string text;
#pragma omp parallel for num_threads(4) reduction(join : odd) reduction(longest : text)
  for (int i = 0; i < 200; i++) {
    if (i % 2) odd.push_back(i);
    std::string here(static_cast<std::size_t>(i == 123 ? 60 : i % 50), 'x');
    if (here.size() > text.size()) text = here;
  }
  std::sort(odd.begin(), odd.end());
  printf("%d %d\n", static_cast<int>(odd.size()), static_cast<int>(text.size()));
  expect(odd.size() == 100 && odd.front() == 1 && odd.back() == 199 && text.size() == 60);
  return expect_result();
}
