// SPDX-License-Identifier: Apache-2.0
// Proves: tasks capture objects by copy and by reference, and throw inside themselves.
#include <omp.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "../c/expect.h"

int main() {
  std::vector<std::string> results(30);
  int caught = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  for (int i = 0; i < 30; i++) {
    std::string name = "task " + std::to_string(i) + " with a long name";
#pragma omp task firstprivate(name, i) shared(results, caught)
    {
      try {
        if (i % 5 == 0) throw std::runtime_error(name);
        results[i] = name;
      } catch (const std::runtime_error& error) {
        results[i] = std::string("caught ") + error.what();
#pragma omp atomic
        caught++;
      }
    }
  }
  for (const auto& text : results) printf("%s\n", text.c_str());
  expect(caught == 6);
  return expect_result();
}
