// SPDX-License-Identifier: Apache-2.0
// Proves: whole lines written to std::cout and std::cerr by all threads all arrive.
#include <omp.h>

#include <iostream>
#include <sstream>

int main() {
  std::cout << "before" << std::endl;
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 12; i++) {
    std::ostringstream line;
    line << "thread " << omp_get_thread_num() << " line " << i << " value " << i * 0.125 << '\n';
#pragma omp critical
    std::cout << line.str() << std::flush;
    if (i == 0) std::cerr << line.str();
  }
  std::cout << "after\n";
  return 0;
}
