// SPDX-License-Identifier: Apache-2.0
// Proves: firstprivate carries values in and lastprivate the last iteration's values out.
#include <omp.h>

#include "expect.h"

struct Point {
  int x, y, z[3];
};

int main(void) {
  int last = -1, base = 1000, tail[4] = {0};
  struct Point point = {1, 2, {3, 4, 5}};
#pragma omp parallel for num_threads(4) firstprivate(base) lastprivate(last, tail, point)
  for (int i = 0; i < 97; i++) {
    base += 1;
    last = i * 2;
    for (int k = 0; k < 4; k++) tail[k] = i + k;
    point.x = i;
    point.z[2] = -i;
  }
  printf("%d %d %d %d\n", last, tail[3], point.x, point.z[2]);
  expect(base == 1000 && last == 192 && tail[0] == 96 && tail[3] == 99);
  expect(point.x == 96 && point.z[2] == -96);
  int chunked = 7;
#pragma omp parallel for num_threads(4) schedule(static, 3) firstprivate(chunked) \
    lastprivate(chunked)
  for (int i = 0; i < 50; i++) chunked = chunked < 0 ? -1 : i;
  expect(chunked == 49);
  // Without "monotonic" stock clang-19 loses lastprivate of dynamic loops.
  int dynamic = 0;
#pragma omp parallel for num_threads(4) schedule(monotonic : dynamic, 2) lastprivate(dynamic)
  for (int i = 0; i < 51; i++) dynamic = i + 1;
  printf("%d %d\n", chunked, dynamic);
  expect(dynamic == 51);
  return expect_result();
}
