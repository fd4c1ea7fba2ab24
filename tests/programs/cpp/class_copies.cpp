// SPDX-License-Identifier: Apache-2.0
// Proves: firstprivate, lastprivate and private objects are constructed, copied and destroyed in
// balance.
#include <omp.h>

#include <string>

#include "../c/expect.h"

static int alive, copies;

class Tracked {
 public:
  Tracked() { add(1); }
  Tracked(const Tracked& other) : value(other.value), text(other.text) {
    add(1);
    __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
  }
  Tracked& operator=(const Tracked& other) = default;
  ~Tracked() { add(-1); }
  int value = 1;
  std::string text = "a text on the heap, more than sixteen bytes";

 private:
  static void add(int by) { __atomic_add_fetch(&alive, by, __ATOMIC_RELAXED); }
};

int main() {
  {
    Tracked in, out, own;
    in.value = 50;
    int wrong = 0;
#pragma omp parallel for num_threads(4) firstprivate(in) lastprivate(out) private(own) \
    reduction(+ : wrong)
    for (int i = 0; i < 40; i++) {
      wrong += in.value < 50 || own.text.size() != 43;
      in.value++;
      out.value = i;
      out.text = std::to_string(i) + in.text.substr(0, 30);
    }
    printf("%d %s %d\n", out.value, out.text.c_str(), in.value);
    expect(wrong == 0 && out.value == 39 && in.value == 50 && copies >= 4);
  }
  printf("%d\n", alive);
  expect(alive == 0);
  return expect_result();
}
