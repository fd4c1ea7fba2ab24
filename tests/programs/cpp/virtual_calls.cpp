// SPDX-License-Identifier: Apache-2.0
// Proves: virtual calls, dynamic_cast and typeid work on objects of other threads.
#include <omp.h>

#include <memory>
#include <typeinfo>
#include <vector>

#include "../c/expect.h"

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  explicit Square(double side) : side(side) {}
  double area() const override { return side * side; }
  double side;
};
struct Strip : Shape {
  explicit Strip(double length) : length(length) {}
  double area() const override { return length; }
  double length;
};

int main() {
  std::vector<std::unique_ptr<Shape>> shapes(64);
  double area = 0;
  int squares = 0, strips = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp for schedule(static, 4)
    for (int i = 0; i < 64; i++) {
      if (i % 2)
        shapes[i] = std::make_unique<Square>(i);
      else
        shapes[i] = std::make_unique<Strip>(i);
    }
#pragma omp for schedule(static, 5) reduction(+ : area, squares, strips)
    for (int i = 0; i < 64; i++) {
      area += shapes[i]->area();
      squares += dynamic_cast<Square*>(shapes[i].get()) != nullptr;
      const Shape& shape = *shapes[i];
      strips += typeid(shape) == typeid(Strip);
    }
  }
  printf("%g %d %d\n", area, squares, strips);
  expect(squares == 32 && strips == 32 && area == 43680 + 992);
  return expect_result();
}
