// SPDX-License-Identifier: Apache-2.0
// Question: what does a loop cost that reads much, shares little and reduces arrays each time?
// Points are read by the thread that owns them, sixteen centres are read by all and rewritten by
// the serial part each round; sums and counts of a thread are private and added in a critical
// section.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

#ifndef ROUNDS
#define ROUNDS 20
#endif
enum { kPoints = 200000, kDimensions = 8, kClusters = 16, kRounds = ROUNDS };

static float points[kPoints][kDimensions];
static float centres[kClusters][kDimensions];
static int owner[kPoints];

// Integer coordinates: all sums are exact, so that the result does not depend on their order.
static void make_points(void) {
  unsigned state = 2463534242u;
  for (int i = 0; i < kPoints; i++)
    for (int d = 0; d < kDimensions; d++) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      points[i][d] = (float)((state >> 20) % 256 + 200u * ((unsigned)i % kClusters >> (d % 4) & 1));
    }
  memcpy(centres, points, sizeof centres);
}

static int nearest(const float* point) {
  int best = 0;
  float least = 1e30f;
  for (int c = 0; c < kClusters; c++) {
    float distance = 0;
    for (int d = 0; d < kDimensions; d++) {
      float difference = point[d] - centres[c][d];
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      best = c;
    }
  }
  return best;
}

int main(void) {
  make_points();
  double start = omp_get_wtime();
  for (int round = 0; round < kRounds; round++) {
    double sums[kClusters][kDimensions] = {{0}};
    long counts[kClusters] = {0};
#pragma omp parallel
    {
      double my_sums[kClusters][kDimensions] = {{0}};
      long my_counts[kClusters] = {0};
#pragma omp for schedule(static) nowait
      for (int i = 0; i < kPoints; i++) {
        int c = owner[i] = nearest(points[i]);
        my_counts[c]++;
        for (int d = 0; d < kDimensions; d++) my_sums[c][d] += points[i][d];
      }
#pragma omp critical
      for (int c = 0; c < kClusters; c++) {
        counts[c] += my_counts[c];
        for (int d = 0; d < kDimensions; d++) sums[c][d] += my_sums[c][d];
      }
    }
    for (int c = 0; c < kClusters; c++)
      for (int d = 0; d < kDimensions; d++)
        if (counts[c] != 0) centres[c][d] = (float)(sums[c][d] / (double)counts[c]);
  }
  double seconds = omp_get_wtime() - start;
  double check = 0;
  for (int i = 0; i < kPoints; i++) check += owner[i] * (i % 97);
  return verdict(seconds, check, 72021136, 0);
}
