// SPDX-License-Identifier: Apache-2.0
// What the programs of bench/unlike have in common: sizes from arguments, a generator that gives
// every item its own numbers, the build's choice of schedule, and what is printed.
//
// Standard output has the checksum only, so that two runs can be compared whole. It does not depend
// on the number of threads or the schedule: sums of integers and sums in a fixed order are printed
// exactly; of those that an OpenMP reduction rounds as it likes (ep, cg) eight digits are. Times
// are on standard error: of all steps, and of those from the third one on.
#ifndef AMASIA_BENCH_UNLIKE_PROGRAM_H
#define AMASIA_BENCH_UNLIKE_PROGRAM_H

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// The schedule of every parallel loop; the benchmark builds with static and with runtime.
#ifndef UNLIKE_SCHEDULE
#define UNLIKE_SCHEDULE static
#endif

// argv[index], a whole number from least to most; without it the fallback. Else a sentence, exit 2.
static inline long argument(int argc, char** argv, int index, const char* name, long fallback,
                            long least, long most) {
  if (index >= argc) return fallback;
  char* end;
  long value = strtol(argv[index], &end, 10);
  if (end == argv[index] || *end != 0 || value < least || value > most) {
    fprintf(stderr, "argument %d (%s) is '%s'; allowed is a whole number from %ld to %ld\n", index,
            name, argv[index], least, most);
    exit(2);
  }
  return value;
}

static inline void* allocate(size_t count, size_t size) {
  void* memory = malloc(count * size);
  if (memory == NULL) {
    fprintf(stderr, "no memory for %zu items of %zu bytes\n", count, size);
    exit(1);
  }
  return memory;
}

// The finaliser of splitmix64: a well mixed number for every item, without a state that runs along.
static inline uint64_t mixed(uint64_t item) {
  item += 0x9e3779b97f4a7c15u;
  item = (item ^ (item >> 30)) * 0xbf58476d1ce4e5b9u;
  item = (item ^ (item >> 27)) * 0x94d049bb133111ebu;
  return item ^ (item >> 31);
}

// In [0, 1).
static inline double uniform(uint64_t item) { return (double)(mixed(item) >> 11) * 0x1p-53; }

// When the steps began, when every loop had run twice (0: it has not), and when they ended.
typedef struct {
  double begin, settled, end;
} Timing;

enum { kSettlingSteps = 2 };

static inline void step_begins(Timing* timing, long step) {
  if (step == 0) timing->begin = omp_get_wtime();
  if (step == kSettlingSteps) timing->settled = omp_get_wtime();
}

static inline void steps_end(Timing* timing) { timing->end = omp_get_wtime(); }

enum { kExact = 17, kReduced = 8 };  // digits

static inline int report(const char* what, double checksum, int digits, const Timing* timing) {
  printf("%s checksum %.*g\n", what, digits, checksum);
  fprintf(stderr, "seconds %.6f\n", timing->end - timing->begin);
  if (timing->settled > 0) fprintf(stderr, "settled %.6f\n", timing->end - timing->settled);
  return 0;
}

#endif
