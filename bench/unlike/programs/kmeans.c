// SPDX-License-Identifier: Apache-2.0
// Shares well: Lloyd's algorithm. Points and their owners settle on the nodes that use them; the
// centres are read by all and rewritten by the serial part in every step.
// kmeans [points [steps]]
#include <string.h>

#include "program.h"

enum { kDimensions = 16, kClusters = 24 };

typedef struct {
  float at[kDimensions];
} Point;

static Point centres[kClusters];

static int nearest(const Point* point) {
  int best = 0;
  float least = 1e30f;
  for (int c = 0; c < kClusters; c++) {
    float distance = 0;
    for (int d = 0; d < kDimensions; d++) {
      float difference = point->at[d] - centres[c].at[d];
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      best = c;
    }
  }
  return best;
}

int main(int argc, char** argv) {
  long count = argument(argc, argv, 1, "points", 60000, kClusters, 1 << 26);
  long steps = argument(argc, argv, 2, "steps", 180, 1, 1 << 20);
  Point* points = allocate((size_t)count, sizeof *points);
  int* owners = allocate((size_t)count, sizeof *owners);
  // Whole coordinates: the sums are exact in any order.
  for (long i = 0; i < count; i++) {
    owners[i] = -1;
    for (int d = 0; d < kDimensions; d++) {
      uint64_t noise = mixed((uint64_t)(i * kDimensions + d)) % 256;
      uint64_t middle = mixed((uint64_t)((i % kClusters) * 97 + d)) % 400;
      points[i].at[d] = (float)(noise + middle);
    }
  }
  memcpy(centres, points, sizeof centres);
  long moved_ever = 0;
  Timing timing = {0};
  for (long step = 0; step < steps; step++) {
    step_begins(&timing, step);
    long sums[kClusters * kDimensions] = {0}, counts[kClusters] = {0}, moved = 0;
#pragma omp parallel for schedule(UNLIKE_SCHEDULE) reduction(+ : sums, counts, moved)
    for (long i = 0; i < count; i++) {
      int c = nearest(&points[i]);
      moved += c != owners[i];
      owners[i] = c;
      counts[c]++;
      for (int d = 0; d < kDimensions; d++) sums[c * kDimensions + d] += (long)points[i].at[d];
    }
    for (int c = 0; c < kClusters; c++)
      for (int d = 0; d < kDimensions && counts[c] != 0; d++)
        centres[c].at[d] = (float)((double)sums[c * kDimensions + d] / (double)counts[c]);
    moved_ever += moved;
  }
  steps_end(&timing);
  double checksum = (double)moved_ever;
  for (long i = 0; i < count; i++) checksum += (double)(owners[i] * (i % 97));
  free(owners);
  free(points);
  return report("kmeans", checksum, kExact, &timing);
}
