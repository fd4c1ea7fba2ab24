// SPDX-License-Identifier: Apache-2.0
// Proves: an exception nobody catches in the serial part ends the program by signal 6.
#include <omp.h>
#include <sys/resource.h>

#include <cstdio>
#include <stdexcept>

int main() {
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  int sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
  sum += omp_get_thread_num();
  printf("%d\n", sum);
  fflush(stdout);
  throw std::runtime_error("nobody catches this");
}
