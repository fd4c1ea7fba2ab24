// SPDX-License-Identifier: Apache-2.0
// Proves: threadprivate objects with constructors keep their own heap memory between regions.
#include <omp.h>

#include <vector>

#include "../c/expect.h"

struct Log {
  std::vector<int> entries{-1};
};

// gcc wants the directive before the definition of an object with a constructor.
extern Log log_of_thread;
#pragma omp threadprivate(log_of_thread)
Log log_of_thread;
static thread_local int serial_number = 7;

int main() {
  int sizes[4], sums[4];
  for (int round = 0; round < 4; round++) {
#pragma omp parallel num_threads(4)
    {
      int me = omp_get_thread_num();
      for (int i = 0; i <= me; i++) log_of_thread.entries.push_back(round);
      serial_number += me;
      sizes[me] = static_cast<int>(log_of_thread.entries.size());
      sums[me] = serial_number;
    }
  }
  for (int i = 0; i < 4; i++) {
    printf("%d %d\n", sizes[i], sums[i]);
    expect(sizes[i] == 1 + 4 * (i + 1) && sums[i] == 7 + 4 * i);
  }
  return expect_result();
}
