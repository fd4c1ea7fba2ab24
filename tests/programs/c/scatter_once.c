// SPDX-License-Identifier: Apache-2.0
// Adds at places all over an array, in a static loop that is run once and comes to no barrier: all
// nodes want all pages, all the time. Threads that find that too dear go on elsewhere in the middle
// of it, with what they have in registers.
// scatter_once [additions [after so many of its own the last thread calls exit(7)]]
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPlaces = 1 << 20 };

static unsigned counts[kPlaces];

int main(int argc, char** argv) {
  const long additions = argc > 1 ? atol(argv[1]) : 3000000;
  const long end_after = argc > 2 ? atol(argv[2]) : 0;
  unsigned long mixed = 0;
  double weight = 0;
  long threads = 0;
#pragma omp parallel reduction(+ : mixed, weight, threads)
  {
    long executed = 0;
    const int last = omp_get_thread_num() + 1 == omp_get_num_threads();
#pragma omp for schedule(static)
    for (long i = 0; i < additions; ++i) {
      unsigned long place = (unsigned long)i * 0x9e3779b97f4a7c15ul;
      place ^= place >> 29;
      place *= 0xbf58476d1ce4e5b9ul;
      place = (place >> 20) % kPlaces;
      __atomic_fetch_add(&counts[place], 1, __ATOMIC_RELAXED);
      mixed += place ^ (unsigned long)i;
      weight += 0.25 * (double)(place % 8);
      if (last && ++executed == end_after) exit(7);
    }
    ++threads;
  }
  long all = 0;
  unsigned most = 0;
  for (int i = 0; i < kPlaces; ++i) {
    all += counts[i];
    if (counts[i] > most) most = counts[i];
  }
  printf("%ld additions by %ld threads, at most %u at a place, %lu %.2f\n", all, threads,
         most, mixed, weight);
  return all != additions;
}
