// SPDX-License-Identifier: Apache-2.0
// Adds at places all over an array, as scatter_once.c does, in a loop that is handed out at run
// time or in sections, once: threads that go on elsewhere take along what they have yet to get.
// handed_out_once [loop|guided|sections [additions]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPlaces = 1 << 20, kFirst = 5, kStep = 7, kSections = 6 };

static unsigned counts[kPlaces];

static void add(long i) {
  unsigned long place = (unsigned long)i * 0x9e3779b97f4a7c15ul;
  place ^= place >> 29;
  place *= 0xbf58476d1ce4e5b9ul;
  __atomic_fetch_add(&counts[(place >> 20) % kPlaces], 1, __ATOMIC_RELAXED);
}

static void add_part(long part, long additions) {
  for (long i = part * additions / kSections; i < (part + 1) * additions / kSections; ++i) {
    add(kFirst + i * kStep);
  }
}

int main(int argc, char** argv) {
  const char* const construct = argc > 1 ? argv[1] : "loop";
  const long additions = argc > 2 ? atol(argv[2]) : 100000;
  const int sections = strcmp(construct, "sections") == 0;
  const int guided = strcmp(construct, "guided") == 0;
  // Not where a step ends.
  const long end = kFirst + additions * kStep - 3;
  long met = 0;
#pragma omp parallel reduction(+ : met)
  {
    if (sections) {
#pragma omp sections nowait
      {
        add_part(0, additions);
#pragma omp section
        add_part(1, additions);
#pragma omp section
        add_part(2, additions);
#pragma omp section
        add_part(3, additions);
#pragma omp section
        add_part(4, additions);
#pragma omp section
        add_part(5, additions);
      }
    } else if (guided) {
#pragma omp for schedule(guided, 100) nowait
      for (long i = kFirst; i < end; i += kStep) add(i);
    } else {
#pragma omp for schedule(dynamic, 10000) nowait
      for (long i = kFirst; i < end; i += kStep) add(i);
    }
    ++met;
  }
  // Each addition once: their places say which.
  unsigned long all = 0, mixed = 0;
  for (int i = 0; i < kPlaces; ++i) {
    all += counts[i];
    mixed = mixed * 31 + counts[i];
  }
  printf("%s: %lu additions by %ld threads, %lx\n", construct, all, met, mixed);
  return all != (unsigned long)additions;
}
