// SPDX-License-Identifier: Apache-2.0
// Proves: copyin of objects with a copy assignment of their own, with and without memory they own.
#include <omp.h>

#include <cstdio>
#include <map>
#include <string>

struct Point {
  double x = 0, y = 0;
  Point& operator=(const Point& other) {
    x = other.x;
    y = other.y;
    return *this;
  }
};

// gcc, whose other threads assign to a map that was not constructed, hangs here without Amasia.
extern Point point;
#pragma omp threadprivate(point)
Point point;
extern std::map<std::string, int> table;
#pragma omp threadprivate(table)
std::map<std::string, int> table;

int main() {
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    point.x = round;
    point.y = round / 8.0;
#pragma omp parallel num_threads(4) copyin(point) reduction(+ : wrong)
    {
      wrong += point.x != round || point.y != round / 8.0;
      point.x = -1;
    }
  }
  for (int i = 0; i < 40; ++i) table["a string that is not short, number " + std::to_string(i)] = i;
#pragma omp parallel num_threads(4) copyin(table) reduction(+ : wrong)
  {
    wrong += table.size() != 40;
    for (const auto& [name, number] : table) {
      wrong += name.find("number " + std::to_string(number)) == std::string::npos;
    }
    table.erase(table.begin());
  }
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  wrong += table.size() != 39;
  std::printf("%d wrong\n", wrong);
  return wrong;
}
