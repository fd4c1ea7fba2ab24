// SPDX-License-Identifier: Apache-2.0
// Proves: exceptions thrown and caught inside one thread of a region, of several types and depths.
#include <omp.h>

#include <stdexcept>
#include <string>

#include "../c/expect.h"

struct Own : std::runtime_error {
  Own(const std::string& text, int number) : std::runtime_error(text), number(number) {}
  int number;
};

static int unwound;
struct Guard {
  ~Guard() { __atomic_add_fetch(&unwound, 1, __ATOMIC_RELAXED); }
};

static void deep(int depth, int number) {
  Guard guard;
  if (depth == 0) {
    if (number % 3 == 0) throw Own("own " + std::to_string(number), number);
    if (number % 3 == 1) throw std::out_of_range("range");
    throw number;
  }
  deep(depth - 1, number);
}

int main() {
  int own = 0, range = 0, plain = 0, text = 0;
#pragma omp parallel for num_threads(4) reduction(+ : own, range, plain, text)
  for (int i = 0; i < 30; i++) {
    try {
      deep(4, i);
    } catch (const Own& error) {
      own += error.number == i;
      text += error.what() == "own " + std::to_string(i);
    } catch (const std::exception&) {
      range++;
    } catch (int number) {
      plain += number == i;
    }
  }
  printf("%d %d %d %d %d\n", own, range, plain, text, unwound);
  expect(own == 10 && range == 10 && plain == 10 && text == 10 && unwound == 150);
  return expect_result();
}
