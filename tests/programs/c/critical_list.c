// SPDX-License-Identifier: Apache-2.0
// Proves: a linked list that all threads prepend to inside a critical section stays whole.
#include <omp.h>
#include <stdlib.h>

#include "expect.h"

struct Item {
  struct Item* next;
  int value;
};

static struct Item* head;

int main(void) {
#pragma omp parallel for num_threads(4) schedule(static, 5)
  for (int i = 0; i < 120; i++) {
    struct Item* item = malloc(sizeof *item);
    item->value = i;
#pragma omp critical(list)
    {
      item->next = head;
      head = item;
    }
  }
  int count = 0, sum = 0;
  while (head != NULL) {
    struct Item* next = head->next;
    count++;
    sum += head->value;
    free(head);
    head = next;
  }
  printf("%d %d\n", count, sum);
  expect(count == 120 && sum == 120 * 119 / 2);
  return expect_result();
}
