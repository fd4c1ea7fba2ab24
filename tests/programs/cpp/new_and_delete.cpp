// SPDX-License-Identifier: Apache-2.0
// Proves: operator new and delete, arrays and aligned types, across threads.
#include <omp.h>

#include <cstdint>
#include <new>
#include <string>

#include "../c/expect.h"

struct alignas(128) Wide {
  int value[32];
};

int main() {
  Wide* wide[4];
  std::string* texts[4];
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    int me = omp_get_thread_num();
    wide[me] = new Wide[3]();
    wide[me][2].value[31] = me;
    texts[me] = new std::string[5];
    for (int i = 0; i < 5; i++) texts[me][i].assign(static_cast<std::size_t>(20 + i), 'n');
    wrong += reinterpret_cast<std::uintptr_t>(wide[me]) % 128 != 0;
#pragma omp barrier
    int other = (me + 3) % 4;
    wrong += wide[other][2].value[31] != other || texts[other][4].size() != 24;
    delete[] wide[other];
    delete[] texts[other];
    int* none = new (std::nothrow) int[1000];
    wrong += none == nullptr;
    delete[] none;
  }
  bool thrown = false;
  try {
    volatile std::size_t huge = SIZE_MAX / 4;
    char* volatile kept = new char[huge];  // volatile: a compiler may leave the pair out
    delete[] kept;
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  printf("%d %d\n", wrong, thrown);
  expect(wrong == 0 && thrown);
  return expect_result();
}
