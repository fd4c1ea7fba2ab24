// SPDX-License-Identifier: Apache-2.0
// Proves: standard containers built by each thread are moved into shared ones and destroyed by
// main.
#include <omp.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "../c/expect.h"

int main() {
  std::vector<int> all;
  std::map<std::string, int> counts;
  std::vector<std::vector<int>> rows(4);
#pragma omp parallel num_threads(4)
  {
    std::vector<int> mine;
    std::string word = "thread " + std::to_string(omp_get_thread_num()) + " of a long text";
#pragma omp for nowait
    for (int i = 0; i < 400; i++) mine.push_back(i * 7 % 400);
#pragma omp critical
    {
      all.insert(all.end(), mine.begin(), mine.end());
      counts[word] += static_cast<int>(mine.size());
    }
    rows[omp_get_thread_num()] = std::move(mine);
  }
  std::sort(all.begin(), all.end());
  for (int i = 0; i < 400; i++) expect(all[i] == i);
  for (const auto& [word, count] : counts) printf("%s: %d\n", word.c_str(), count);
  long sum = 0;
  for (const auto& row : rows) sum += std::accumulate(row.begin(), row.end(), 0L);
  printf("%ld\n", sum);
  expect(counts.size() == 4 && sum == 79800);
  return expect_result();
}
