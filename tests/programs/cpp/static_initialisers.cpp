// SPDX-License-Identifier: Apache-2.0
// Proves: objects made before main, with heap memory and regions of their own, are there on all
// nodes.
#include <omp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../c/expect.h"

static long region_before_main() {
  long sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum)
  for (int i = 0; i < 100; i++) sum += i;
  return sum;
}

static const std::vector<int> kSquares = [] {
  std::vector<int> squares;
  for (int i = 0; i < 3000; i++) squares.push_back(i * i);
  return squares;
}();
static std::map<int, std::string> names = {{0, "nought"}, {1, "a rather long name, on the heap"}};
static std::unique_ptr<int[]> cells(new int[256]());
static const long kSum = region_before_main();

struct Farewell {
  ~Farewell() { printf("destroyed after main, %d names\n", static_cast<int>(names.size())); }
};
static Farewell farewell;

static std::string& lazy() {
  static std::string text = "made on first use, by one thread only";
  return text;
}

int main() {
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    int me = omp_get_thread_num();
    wrong += kSquares[2999] != 2999 * 2999 || names.at(1).size() != 31 || kSum != 4950;
    wrong += lazy().size() != 37;
    cells[me * 64] = me + 1;
#pragma omp barrier  // nobody reads `names` any more
#pragma omp critical
    names[10 + me] = std::string(40, static_cast<char>('a' + me));
#pragma omp barrier
    wrong += names.at(10 + (me + 1) % 4)[39] != 'a' + (me + 1) % 4;
    wrong += cells[(me + 1) % 4 * 64] != (me + 1) % 4 + 1;
  }
  printf("%d %s\n", wrong, names[13].c_str());
  expect(wrong == 0);
  return expect_result();
}
