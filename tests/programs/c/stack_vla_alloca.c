// SPDX-License-Identifier: Apache-2.0
// Proves: variable-length arrays and alloca, shared or private to a thread, keep their contents.
#include <alloca.h>
#include <omp.h>
#include <string.h>

#include "expect.h"

static long fill_and_sum(int count, int seed) {
  int row[count];
  int* more = alloca((size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) {
    row[i] = seed + i;
    more[i] = row[i] * 2;
  }
  long sum = 0;
  for (int i = 0; i < count; i++) sum += more[i] - row[i];
  return sum;
}

int main(int argc, char** argv) {
  (void)argv;
  int count = 1000 * argc;
  int shared_row[count];
  char* text = alloca((size_t)count);
  memset(text, 'x', (size_t)count);
  int wrong = 0;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    int me = omp_get_thread_num();
#pragma omp for
    for (int i = 0; i < count; i++) {
      shared_row[i] = i;
      text[i] = (char)('a' + i % 26);
    }
    long expected = 0;
    for (int i = 0; i < 300 + me; i++) expected += me + i;
    wrong += fill_and_sum(300 + me, me) != expected;
    wrong += shared_row[count - 1 - me] != count - 1 - me || text[27] != 'b';
  }
  long sum = 0;
  for (int i = 0; i < count; i++) sum += shared_row[i] + text[i];
  printf("%ld %d\n", sum, wrong);
  expect(wrong == 0);
  return expect_result();
}
