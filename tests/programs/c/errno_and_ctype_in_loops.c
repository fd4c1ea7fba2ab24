// SPDX-License-Identifier: Apache-2.0
// What the C library has for each thread, in the middle of loops that nodes may find too dear:
// errno is still what the thread has set, and characters are of their kinds.
#include <ctype.h>
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPlaces = 1 << 15, kSteps = 10 };

static unsigned counts[kPlaces];
static const char text[] = "Where Are 12 Threads, And 34 More?";

// Compilers keep the address of errno in a register here, if they like.
static long work(int step, int thread, long additions) {
  long wrong = 0;
  errno = 1000 * step + thread;
#pragma omp for schedule(static)
  for (long i = 0; i < additions; ++i) {
    unsigned long place = (unsigned long)(i + step) * 0x9e3779b97f4a7c15ul;
    place = (place >> 20) % kPlaces;
    const unsigned char letter = (unsigned char)text[place % (sizeof text - 1)];
    const unsigned kinds = (isupper(letter) != 0) + 2 * (isdigit(letter) != 0) + 4;
    __atomic_fetch_add(&counts[place], kinds, __ATOMIC_RELAXED);
    if (errno != 1000 * step + thread) ++wrong;
  }
  if (errno != 1000 * step + thread) ++wrong;
  return wrong;
}

int main(int argc, char** argv) {
  const long additions = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
  long wrong = 0;
#pragma omp parallel reduction(+ : wrong)
  for (int step = 0; step < kSteps; ++step) wrong += work(step, omp_get_thread_num(), additions);
  unsigned long all = 0;
  for (int i = 0; i < kPlaces; ++i) all += counts[i];
  printf("%lu, %ld times another errno\n", all, wrong);
  return wrong != 0;
}
