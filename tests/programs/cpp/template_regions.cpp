// SPDX-License-Identifier: Apache-2.0
// Proves: regions in templates and member functions use members and template parameters.
#include <omp.h>

#include <vector>

#include "../c/expect.h"

template <typename T, int kThreads>
class Series {
 public:
  explicit Series(int count) : values_(static_cast<std::size_t>(count)) {}

  void fill(T step) {
#pragma omp parallel for num_threads(kThreads)
    for (int i = 0; i < size(); i++) values_[i] = step * static_cast<T>(i);
  }

  T sum() {
    T total{};
#pragma omp parallel for num_threads(kThreads) reduction(+ : total) schedule(dynamic, 16)
    for (int i = 0; i < size(); i++) {
      total += values_[i];
#pragma omp atomic
      reads_++;
    }
    return total;
  }

  int reads() const { return reads_; }

 private:
  int size() const { return static_cast<int>(values_.size()); }
  std::vector<T> values_;
  int reads_ = 0;
};

int main() {
  Series<double, 4> doubles(200);
  Series<long, 3> longs(200);
  Series<unsigned char, 2> bytes(100);
  doubles.fill(0.5);
  longs.fill(3);
  bytes.fill(1);
  double a = doubles.sum();
  long b = longs.sum();
  int c = bytes.sum();
  printf("%g %ld %d %d\n", a, b, c, doubles.reads() + longs.reads() + bytes.reads());
  expect(a == 9950 && b == 59700 && c == 4950 % 256 && bytes.reads() == 100);
  return expect_result();
}
