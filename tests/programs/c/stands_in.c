// SPDX-License-Identifier: Apache-2.0
// Proves: a loop's iterations are each executed once and reduced right, whatever thread executes
// them, where a thread may stand in for several of a larger team: what iterations call still learns
// which thread there is, and code that makes more of its thread's number is let be.
#include <complex.h>
#include <omp.h>

#include "expect.h"

enum { kCount = 3000, kMost = 256 };

static int touched[kCount];
static long scratch[kMost][16];
static int team;

static long work(long i) {
  volatile long sum = 0;
  for (long k = 0; k < i * 4; k++) sum += k ^ i;
  return sum;
}

static void expect_each_once(long from, long to) {
  for (long i = 0; i < kCount; i++) {
    expect(touched[i] == (i >= from && i < to));
    touched[i] = 0;
  }
}

// Of the thread's own: no other may use it meanwhile.
__attribute__((noinline)) static long by_number(long i) {
  const int number = omp_get_thread_num();
  expect(number >= 0 && number < omp_get_num_threads() && omp_get_num_threads() <= team);
  long *const mine = scratch[number];
  for (int k = 0; k < 16; k++) mine[k] = i + k;
  work(i);
  long sum = 0;
  for (int k = 0; k < 16; k++) sum += mine[k] - i;
  return sum;
}

static void iterations_know_their_thread(void) {
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < kCount; i++) {
    sum += by_number(i);
    touched[i]++;
  }
  expect(sum == kCount * 120L);
  expect_each_once(0, kCount);
}

static void shared_by_hand(int count) {
#pragma omp parallel
  {
    const int number = omp_get_thread_num(), threads = omp_get_num_threads();
    int share = count / threads, rest = count % threads;
    if (number < rest) {
      share++;
      rest = 0;
    }
    const int begin = number * share + rest;
    for (int i = begin; i < begin + share; i++) {
      work(i);
      touched[i]++;
    }
  }
  expect_each_once(0, count);
}

static void shared_by_hand_to_the_last(int count) {
#pragma omp parallel
  {
    const int number = omp_get_thread_num(), threads = omp_get_num_threads();
    const int share = count / threads;
    const int end = number == threads - 1 ? count : (number + 1) * share;
    for (int i = number * share; i < end; i++) {
      work(i);
      touched[i]++;
    }
  }
  expect_each_once(0, count);
}

static void in_chunks(void) {
#pragma omp parallel for schedule(static, 7)
  for (int i = 0; i < kCount; i++) {
    work(i);
    touched[i]++;
  }
  expect_each_once(0, kCount);
}

// Both loops are divided alike: what one wrote, the same thread reads.
static void two_loops(long *const values) {
#pragma omp parallel
  {
#pragma omp for nowait
    for (long i = 0; i < kCount; i++) values[i] = work(i) + 1;
#pragma omp for
    for (long i = 0; i < kCount; i++) {
      if (values[i] == work(i) + 1) touched[i]++;
    }
  }
  expect_each_once(0, kCount);
}

static void of_many_types(unsigned char bytes, unsigned long large, int step) {
#pragma omp parallel for
  for (unsigned char i = 3; i < bytes; i++) {
    work(i);
    touched[i]++;
  }
  expect_each_once(3, bytes);
#pragma omp parallel for
  for (unsigned long i = large; i < large + kCount; i++) {
    work((long)(i - large));
    touched[i - large]++;
  }
  expect_each_once(0, kCount);
#pragma omp parallel for
  for (int i = 2 * kCount - 1; i > 0; i -= step) {
    work(i / 2);
    touched[i / 2]++;
  }
  expect_each_once(0, kCount);
#pragma omp parallel for collapse(3)
  for (int i = 0; i < 10; i++)
    for (long j = 0; j < 20; j++)
      for (short k = 0; k < 15; k++) {
        work(i * 100);
        touched[(i * 20 + j) * 15 + k]++;
      }
  expect_each_once(0, kCount);
}

static void whole_reductions(void) {
  int product = 1, all = 1, some = 0, parity = 0;
  unsigned bits = 0;
#pragma omp parallel for reduction(* : product) reduction(&& : all) reduction(|| : some) \
    reduction(^ : parity) reduction(| : bits)
  for (int i = 0; i < kCount; i++) {
    work(i);
    if (i % 1000 == 7) product *= 3;
    all = all && i >= 0;
    some = some || i == 1234;
    parity ^= i;
    bits |= 1u << i % 32;
  }
  int expected = 0;
  for (int i = 0; i < kCount; i++) expected ^= i;
  expect(product == 27 && all && some && parity == expected && bits == ~0u);
}

static void one_reduction_each(void) {
  float floats = 0;
#pragma omp parallel for reduction(+ : floats)
  for (int i = 0; i < kCount; i++) floats += (float)(work(i) >= 0);
  expect(floats == kCount);
  double most = -1;
#pragma omp parallel for reduction(max : most)
  for (int i = 0; i < kCount; i++) {
    work(i);
    if (i > most) most = i;
  }
  expect(most == kCount - 1);
  double least = 1e9;
#pragma omp parallel for reduction(min : least)
  for (int i = 5; i < kCount; i++) {
    work(i);
    if (i * 0.5 < least) least = i * 0.5;
  }
  expect(least == 2.5);
  short small = 0;
#pragma omp parallel for reduction(+ : small)
  for (int i = 0; i < kCount; i++) small = (short)(small + (work(i) >= 0));
  expect(small == kCount);
  long double longest = 0;
#pragma omp parallel for reduction(+ : longest)
  for (int i = 0; i < kCount; i++) longest += work(i) >= 0;
  expect(longest == kCount);
  double complex sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < kCount; i++) sum += (work(i) >= 0) + 2 * I;
  expect(creal(sum) == kCount && cimag(sum) == 2 * kCount);
}

static void private_arrays(int length) {
  long given[40];
  for (int k = 0; k < 40; k++) given[k] = k;
  double sums[length];
  for (int k = 0; k < length; k++) sums[k] = 10;
  long wrong = 0;
#pragma omp parallel for firstprivate(given) reduction(+ : sums[:length]) reduction(+ : wrong)
  for (int i = 0; i < kCount; i++) {
    work(i);
    wrong += given[i % 40] < i % 40;
    given[i % 40]++;
    sums[i % length] += 1;
  }
  expect(wrong == 0);
  for (int k = 0; k < length; k++) expect(sums[k] == 10 + kCount / length);
}

static void locks_and_atomics(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  long sum = 0, next = 0, seen = 0;
#pragma omp parallel for
  for (int i = 0; i < kCount; i++) {
    work(i);
    long number;
    if (i % 16 == 0) {
      omp_set_lock(&lock);
      sum += i;
      omp_unset_lock(&lock);
#pragma omp atomic capture
      number = next++;
#pragma omp atomic
      seen += number;
    }
  }
  const long count = (kCount + 15) / 16;
  expect(next == count && seen == count * (count - 1) / 2 && sum == 16 * seen);
  omp_destroy_lock(&lock);
}

static void teams_of_given_size(void) {
  int threads = 0;
#pragma omp parallel for num_threads(2) reduction(max : threads)
  for (int i = 0; i < kCount; i++) {
    by_number(i);
    touched[i]++;
    threads = 1;
  }
  expect(threads == 1);
  expect_each_once(0, kCount);
}

// Only a part of the team's threads has iterations, and threads tell.
static void counts_who_works(int count) {
  int working = 0;
#pragma omp parallel
  {
    int mine = 0;
#pragma omp for nowait
    for (int i = 0; i < count; i++) mine += work(i) >= 0;
    if (mine >= 0) {
#pragma omp atomic
      working++;
    }
  }
  expect(working >= 1 && working <= team);
}

// Each execution again, long enough for what is known of it by then to count.
static void again_and_again(long *const results) {
  for (int round = 1; round <= 8; round++) {
#pragma omp parallel for
    for (long i = 0; i < kCount; i++) {
      results[i] = by_number(i) + round;
      touched[i]++;
    }
    for (long i = 0; i < kCount; i++) expect(results[i] == 120 + round);
    expect_each_once(0, kCount);
  }
}

// What a thread adds beside its iterations is 0 at first.
static void counts_later(void) {
  for (int round = 0, threads = 0; round < 6; round++, threads = 0) {
    const int one = round >= 3;
#pragma omp parallel
    {
#pragma omp for nowait
      for (long i = 0; i < kCount; i++) touched[i] += work(i) >= 0;
#pragma omp atomic
      threads += one;
    }
    expect(one ? threads >= 1 && threads <= team : threads == 0);
    expect_each_once(0, kCount);
  }
}

// In some executions there are too few iterations to be shared so.
static void of_changing_length(void) {
  for (int round = 0; round < 8; round++) {
    const long count = round % 4 == 3 ? round : kCount - round;
#pragma omp parallel for
    for (long i = 0; i < count; i++) touched[i] += work(i) >= 0;
    expect_each_once(0, count);
  }
}

static long values[kCount];

int main(void) {
  team = omp_get_max_threads();
  iterations_know_their_thread();
  shared_by_hand(kCount);
  shared_by_hand_to_the_last(kCount - 1);
  in_chunks();
  two_loops(values);
  of_many_types(200, 1ul << 40, 2);
  whole_reductions();
  one_reduction_each();
  private_arrays(30);
  locks_and_atomics();
  teams_of_given_size();
  counts_who_works(kCount);
  again_and_again(values);
  counts_later();
  of_changing_length();
  return expect_result();
}
