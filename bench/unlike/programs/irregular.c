// SPDX-License-Identifier: Apache-2.0
// A loop whose iterations differ by a degree of 0 to 100 (per cent), as in section 5.7 of the paper
// on libHetMP. Shapes:
//   phases   the last `degree` per cent of the iterations compute, those before gather from memory
//            that other iterations wrote: what a first probe sees does not hold for the rest
//   mingled  of any 100 iterations `degree` compute and the others gather
//   linear   all compute; their cost rises from (1 - degree) to (1 + degree) of the mean
//   random   all compute; `degree` of the cost is drawn from an exponential distribution
// Each iteration does `weight` times the work.
// irregular [shape [degree [iterations [steps [weight]]]]]
#include <math.h>
#include <string.h>

#include "program.h"

// A cell has a cache line of its own. The two kinds of iterations take about the same time.
enum { kCellDoubles = 8, kGathers = 32, kMeanRounds = 80 };

typedef struct {
  double value[kCellDoubles];
} Cell;

typedef enum { kPhases, kMingled, kLinear, kRandom, kShapes } Shape;
static const char* const kNames[kShapes] = {"phases", "mingled", "linear", "random"};

static Shape shape_named(const char* name) {
  for (int shape = 0; shape < kShapes; shape++)
    if (strcmp(name, kNames[shape]) == 0) return (Shape)shape;
  fprintf(stderr, "argument 1 (shape) is '%s'; allowed is phases, mingled, linear or random\n",
          name);
  exit(2);
}

static int computes(Shape shape, long i, long iterations, long degree) {
  if (shape == kPhases) return i >= iterations - iterations * degree / 100;
  if (shape == kMingled) return i * 37 % 100 < degree;
  return 1;
}

static long rounds_of(Shape shape, long i, long iterations, long degree) {
  double part = (double)degree / 100, factor = 1;
  if (shape == kLinear) factor += part * (2 * ((double)i + 0.5) / (double)iterations - 1);
  if (shape == kRandom) factor += part * (-log(1 - uniform((uint64_t)i + 5)) - 1);
  return (long)(kMeanRounds * factor);
}

// A chaotic map: each round needs the one before, so that nothing can be left out or overlapped.
static double compute(double x, long rounds) {
  for (long round = 0; round < rounds; round++) x = 3.75 * x * (1 - x);
  return x;
}

static double gather(const Cell* cells, long iterations, long i, long gathers, long step) {
  double sum = 0;
  for (long g = 0; g < gathers; g++) {
    uint64_t from = mixed((uint64_t)((step * iterations + i) * gathers + g));
    sum += cells[from % (uint64_t)iterations].value[g % kCellDoubles];
  }
  return sum / (double)gathers;
}

int main(int argc, char** argv) {
  Shape shape = argc > 1 ? shape_named(argv[1]) : kPhases;
  long degree = argument(argc, argv, 2, "degree", 50, 0, 100);
  long iterations = argument(argc, argv, 3, "iterations", 40000, 1, 1 << 26);
  long steps = argument(argc, argv, 4, "steps", 240, 1, 1 << 20);
  long weight = argument(argc, argv, 5, "weight", 1, 1, 1 << 16);
  Cell* old_cells = allocate((size_t)iterations, sizeof *old_cells);
  Cell* new_cells = allocate((size_t)iterations, sizeof *new_cells);
  for (long i = 0; i < iterations; i++)
    for (int d = 0; d < kCellDoubles; d++)
      old_cells[i].value[d] = new_cells[i].value[d] = 0.1 + 0.8 * uniform((uint64_t)(i * 8 + d));
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
    for (long i = 0; i < iterations; i++) {
      double* value = new_cells[i].value;
      long d = step % kCellDoubles;
      if (computes(shape, i, iterations, degree))
        value[d] = compute(old_cells[i].value[d], weight * rounds_of(shape, i, iterations, degree));
      else
        value[d] = gather(old_cells, iterations, i, weight * kGathers, step);
    }
    Cell* swapped = old_cells;
    old_cells = new_cells;
    new_cells = swapped;
  }
  steps_end(&timing);
  double checksum = 0;
  for (long i = 0; i < iterations; i++)
    for (int d = 0; d < kCellDoubles; d++) checksum += old_cells[i].value[d] * (double)(i % 97);
  free(old_cells);
  free(new_cells);
  return report("irregular", checksum, kExact, &timing);
}
