// SPDX-License-Identifier: Apache-2.0
// Shares well: European options priced by the formula of Black and Scholes, over the same arrays in
// every step, so that inputs and prices settle where they are used.
// options [count [steps]]
#include <math.h>

#include "program.h"

typedef struct {
  float spot, strike, rate, volatility, years;
  int put;
} Option;

// The normal distribution by polynomial 26.2.17 of Abramowitz and Stegun, good to 7.5e-8.
static double normal(double x) {
  double t = 1 / (1 + 0.2316419 * fabs(x));
  double tail = t * (0.319381530 +
                     t * (-0.356563782 +
                          t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  double upper = 0.39894228040143267794 * exp(-0.5 * x * x) * tail;
  return x < 0 ? upper : 1 - upper;
}

static double price(const Option* option, double drift) {
  double root = option->volatility * sqrt(option->years);
  double rate = option->rate + drift;
  double d1 = (log(option->spot / option->strike) +
               (rate + 0.5 * option->volatility * option->volatility) * option->years) / root;
  double d2 = d1 - root;
  double present = option->strike * exp(-rate * option->years);
  if (option->put) return present * normal(-d2) - option->spot * normal(-d1);
  return option->spot * normal(d1) - present * normal(d2);
}

int main(int argc, char** argv) {
  long count = argument(argc, argv, 1, "count", 65536, 1, 1 << 28);
  long steps = argument(argc, argv, 2, "steps", 500, 1, 1 << 20);
  Option* options = allocate((size_t)count, sizeof *options);
  double* prices = allocate((size_t)count, sizeof *prices);
  for (long i = 0; i < count; i++) {
    uint64_t seed = (uint64_t)i * 8;
    options[i] = (Option){.spot = (float)(50 + 100 * uniform(seed)),
                          .strike = (float)(50 + 100 * uniform(seed + 1)),
                          .rate = (float)(0.01 + 0.09 * uniform(seed + 2)),
                          .volatility = (float)(0.05 + 0.6 * uniform(seed + 3)),
                          .years = (float)(0.1 + 2 * uniform(seed + 4)),
                          .put = (int)(mixed(seed + 5) & 1)};
  }
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
    double drift = 1e-4 * (double)step;
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
    for (long i = 0; i < count; i++) prices[i] = price(&options[i], drift);
  }
  steps_end(&timing);
  double checksum = 0;
  for (long i = 0; i < count; i++) checksum += prices[i];
  free(prices);
  free(options);
  return report("options", checksum, kExact, &timing);
}
