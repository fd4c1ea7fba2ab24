// SPDX-License-Identifier: Apache-2.0
// Proves: a region with one static loop gives each iteration once, reduces what it should and does
// everything beside the loop once for each thread, however unlike its iterations are. Each region
// runs once: a runtime that knows nothing of a loop may give its threads further iterations later.
#include <omp.h>

#include "expect.h"

enum { kCount = 4000, kBins = 37 };

static long results[kCount];
static long touched[kCount];

static long work(long i) {
  volatile long sum = 0;
  for (long k = 0; k < i * 4; k++) sum += k ^ i;
  return sum;
}

static long expected_sum(long from, long to) {
  long sum = 0;
  for (long i = from; i < to; i++) sum += work(i) % 1000;
  return sum;
}

static void expect_each_once(long from, long to) {
  for (long i = 0; i < kCount; i++) {
    expect(touched[i] == (i >= from && i < to ? 1 : 0));
    touched[i] = 0;
  }
}

static void plain(void) {
#pragma omp parallel for
  for (long i = 0; i < kCount; i++) {
    results[i] = work(i);
    touched[i]++;
  }
  expect_each_once(0, kCount);
  for (long i = 0; i < kCount; i += 97) expect(results[i] == work(i));
}

static void downwards(void) {
#pragma omp parallel for
  for (unsigned i = kCount; i > 5; i -= 2) {
    work(i);
    touched[i - 1]++;
  }
  for (long i = 0; i < kCount; i++) {
    expect(touched[i] == (i > 4 && (kCount - 1 - i) % 2 == 0 ? 1 : 0));
    touched[i] = 0;
  }
}

static void square(int rows, int columns) {
#pragma omp parallel for collapse(2)
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      work(row * 10);
      touched[row * columns + column]++;
    }
  expect_each_once(0, (long)rows * columns);
}

static void reductions(long expected) {
  long sum = 0, least = 1L << 40, most = -1, all = -1;
#pragma omp parallel for reduction(+ : sum) reduction(min : least) reduction(max : most) \
    reduction(& : all)
  for (long i = 100; i < kCount; i++) {
    sum += work(i) % 1000;
    if (i + 7 < least) least = i + 7;
    if (i > most) most = i;
    all &= ~(i & 1);
    touched[i]++;
  }
  expect(sum == expected && least == 107 && most == kCount - 1 && all == ~1L);
  expect_each_once(100, kCount);
}

static void array_reduction(void) {
  long bins[kBins] = {0};
  bins[3] = 1000;
#pragma omp parallel for reduction(+ : bins[:kBins])
  for (long i = 0; i < kCount; i++) {
    bins[i % kBins] += 1 + work(i) % 2;
    touched[i]++;
  }
  long expected[kBins] = {0};
  expected[3] = 1000;
  for (long i = 0; i < kCount; i++) expected[i % kBins] += 1 + work(i) % 2;
  for (int b = 0; b < kBins; b++) expect(bins[b] == expected[b]);
  expect_each_once(0, kCount);
}

struct pair {
  long sum, count;
};
static struct pair joined(struct pair a, struct pair b) {
  struct pair both = {a.sum + b.sum, a.count + b.count};
  return both;
}
#pragma omp declare reduction(join : struct pair : omp_out = joined(omp_out, omp_in)) \
    initializer(omp_priv = (struct pair){0, 0})

static void own_reduction(void) {
  struct pair total = {5, 0};
#pragma omp parallel for reduction(join : total)
  for (long i = 0; i < kCount; i++) total = joined(total, (struct pair){work(i) % 10 + i, 1});
  long expected = 5;
  for (long i = 0; i < kCount; i++) expected += work(i) % 10 + i;
  expect(total.sum == expected && total.count == kCount);
}

static void lastprivate_and_firstprivate(void) {
  long last = -1, begin = 17, wrong = 0;
#pragma omp parallel for lastprivate(last) firstprivate(begin) reduction(+ : wrong)
  for (long i = 0; i < kCount; i++) {
    work(i);
    wrong += begin != 17;
    last = i * 3;
  }
  expect(last == (kCount - 1) * 3L && wrong == 0);
}

// What follows is not only a loop: it has to be done once for each thread.
static void counts_before(void) {
  long threads = 0, team = 0;
#pragma omp parallel shared(threads)
  {
#pragma omp atomic
    threads++;
#pragma omp for nowait
    for (long i = 0; i < kCount; i++) touched[i] += 1 + 0 * work(i);
#pragma omp master
    team = omp_get_num_threads();
  }
  expect(threads == team);
  expect_each_once(0, kCount);
}

static void counts_after(int *const threads) {
#pragma omp parallel
  {
#pragma omp for nowait
    for (long i = 0; i < kCount; i++) touched[i] += 1 + 0 * work(i);
#pragma omp atomic
    (*threads)++;
  }
  expect_each_once(0, kCount);
}

static void counts_after_reduction(int *const threads) {
  long sum = 0;
#pragma omp parallel
  {
#pragma omp for nowait reduction(+ : sum)
    for (long i = 0; i < kCount; i++) sum += 1 + 0 * work(i);
#pragma omp atomic
    (*threads)++;
  }
  expect(sum == kCount);
}

static void keeps_between_loops(void) {
  long sum = 0;
#pragma omp parallel
  {
    long mine = 0;
#pragma omp for
    for (long i = 0; i < kCount; i++) mine += 1 + 0 * work(i);
#pragma omp for
    for (long i = 0; i < kCount; i++) mine += 2;
#pragma omp atomic
    sum += mine;
  }
  expect(sum == 3L * kCount);
}

static void keeps_a_private_sum(void) {
  long sums[256] = {0}, sum = 0;
#pragma omp parallel
  {
    long mine = 0;
    const int thread = omp_get_thread_num();
#pragma omp for nowait
    for (long i = 0; i < kCount; i++) mine += 1 + 0 * work(i);
    sums[thread] = mine;
  }
  for (int t = 0; t < 256; t++) sum += sums[t];
  expect(sum == kCount);
}

static void locked(void) {
  long order[kCount], next = 0, most = 0;
#pragma omp parallel for
  for (long i = 0; i < kCount / 8; i++) {
    work(i * 4);
#pragma omp critical
    order[next++] = i;
  }
  for (long i = 0; i < next; i++) {
    touched[order[i]]++;
    if (order[i] > most) most = order[i];
  }
  expect(next == kCount / 8 && most == kCount / 8 - 1);
  expect_each_once(0, kCount / 8);
}

int main(void) {
  plain();
  downwards();
  square(40, 90);
  reductions(expected_sum(100, kCount));
  array_reduction();
  own_reduction();
  lastprivate_and_firstprivate();
  counts_before();
  int after = 0, after_reduction = 0;
  counts_after(&after);
  counts_after_reduction(&after_reduction);
  // A team may have fewer threads than it might.
  expect(after >= 1 && after <= omp_get_max_threads());
  expect(after_reduction >= 1 && after_reduction <= omp_get_max_threads());
  keeps_between_loops();
  keeps_a_private_sum();
  locked();
  printf("done\n");
  return expect_result();
}
