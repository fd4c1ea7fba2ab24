// SPDX-License-Identifier: Apache-2.0
// Shares well: nothing is shared but ten counts and two sums. Gaussian pairs from uniform ones by
// the polar method, counted by the ring they fall into (the idea of the NAS benchmark EP).
// ep [blocks [steps]]; a block is 1024 pairs.
#include <math.h>

#include "program.h"

enum { kBlockPairs = 1024, kRings = 10 };

int main(int argc, char** argv) {
  long blocks = argument(argc, argv, 1, "blocks", 2048, 1, 1 << 24);
  long steps = argument(argc, argv, 2, "steps", 40, 1, 1 << 20);
  long rings[kRings] = {0};
  double sum_x = 0, sum_y = 0;
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE) reduction(+ : rings, sum_x, sum_y)
    for (long block = 0; block < blocks; block++) {
      uint64_t pair = (uint64_t)(step * blocks + block) * kBlockPairs;
      for (uint64_t end = pair + kBlockPairs; pair < end; pair++) {
        double x = 2 * uniform(2 * pair) - 1, y = 2 * uniform(2 * pair + 1) - 1;
        double square = x * x + y * y;
        if (square > 1 || square == 0) continue;
        double factor = sqrt(-2 * log(square) / square);
        double a = fabs(x * factor), b = fabs(y * factor);
        rings[(int)(a > b ? a : b)]++;
        sum_x += x * factor;
        sum_y += y * factor;
      }
    }
  }
  steps_end(&timing);
  double checksum = fabs(sum_x) + 2 * fabs(sum_y);
  for (int ring = 0; ring < kRings; ring++) checksum += (double)rings[ring] * (ring + 1);
  return report("ep", checksum, kReduced, &timing);
}
