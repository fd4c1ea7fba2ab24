// SPDX-License-Identifier: Apache-2.0
// Proves: threads find their threadprivate variables again, whether regions before were shared
// between nodes or stayed on one: here every other one does, which uses the address of a variable
// of the thread that forks it.
#include <omp.h>

#include "expect.h"

#define THREADS 4
#define ROUNDS 12

struct list {
  struct list* next;
  int number;
};

static int visits = 5;
static char letter = 'a';
static double table[600];  // more than a page
static int* own;           // to another variable of the thread
static struct list first;  // to itself at first, and to what lies elsewhere
#pragma omp threadprivate(visits, letter, table, own, first)

static struct list elsewhere[THREADS];
static int seen[THREADS], wrong[THREADS];

static void visit(int round) {
  int me = omp_get_thread_num();
  if (round == 0) {
    own = &visits;
    first.next = &first;
    if (me == 0) visits = 5;
  }
  wrong[me] += own != &visits || visits != 5 + round || letter != 'a' + (me == 0 ? 0 : round);
  wrong[me] += first.number != round;
  wrong[me] += first.next != (round % 3 == 1 ? &elsewhere[me] : &first);
  for (int i = 0; i < 600; i++) wrong[me] += table[i] != round * (me + i);
  ++*own;
  if (me != 0) letter++;
  first.number++;
  first.next = round % 3 == 0 ? &elsewhere[me] : &first;
  for (int i = 0; i < 600; i++) table[i] += me + i;
  seen[me]++;
}

int main(void) {
  int* const of_main = &visits;
  int sum = 0;
  omp_set_dynamic(0);
  for (int round = 0; round < ROUNDS; round += 2) {
#pragma omp parallel num_threads(THREADS)
    visit(round);
    sum = 0;
#pragma omp parallel num_threads(THREADS) firstprivate(of_main) reduction(+ : sum)
    {
      int before = *of_main > 0;
#pragma omp barrier
      sum += before;
      visit(round + 1);
    }
    expect(sum == THREADS);
  }
  for (int i = 0; i < THREADS; i++) {
    printf("thread %d: %d visits, %d wrong\n", i, seen[i], wrong[i]);
    expect(seen[i] == ROUNDS && wrong[i] == 0);
  }
  return expect_result();
}
