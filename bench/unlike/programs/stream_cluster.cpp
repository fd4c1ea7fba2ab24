// SPDX-License-Identifier: Apache-2.0
// Shares badly: facility location by local search (the pattern of PARSEC's and Rodinia's
// streamcluster). Many short loops over all points, each to learn what a further centre would gain;
// coordinates and centres' tables are gathered, and the points are shuffled now and then, so that
// nothing settles.
// stream_cluster [points [candidates]]
#include <utility>
#include <vector>

#include "program.h"

namespace {

constexpr int kDimensions = 32;
constexpr int kMostCentres = 64;
constexpr long kOpenCost = 600000;
constexpr long kCandidatesBetweenShuffles = 100;

struct Point {
  const int* at;
  long cost;
  int centre;
};

struct Clusters {
  std::vector<int> coordinates;
  std::vector<Point> points;
  std::vector<const int*> centres;
  std::vector<char> switches;
};

// Whole coordinates: costs are exact, so that the decisions do not depend on the order of sums.
long distance(const int* a, const int* b) {
  int sum = 0;
  for (int d = 0; d < kDimensions; d++) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

Clusters make_clusters(long count) {
  Clusters all;
  all.coordinates.resize(count * kDimensions);
  for (long i = 0; i < count * kDimensions; i++) {
    uint64_t middle = mixed(static_cast<uint64_t>(i / kDimensions % 23 * 131 + i % kDimensions));
    all.coordinates[i] = static_cast<int>(mixed(static_cast<uint64_t>(i)) % 40 + middle % 60);
  }
  all.points.resize(count);
  all.switches.resize(count);
  all.centres.push_back(&all.coordinates[0]);
  for (long i = 0; i < count; i++) {
    const int* at = &all.coordinates[i * kDimensions];
    all.points[i] = {at, distance(at, all.centres[0]), 0};
  }
  return all;
}

// Opens a centre at the candidate if that gains. What the points of an old centre that stay with it
// would lose by moving to the candidate tells if that one is better closed.
bool try_centre(Clusters& all, const int* candidate) {
  long count = static_cast<long>(all.points.size());
  long saved = 0, losses[kMostCentres] = {};
#pragma omp parallel for schedule(UNLIKE_SCHEDULE) reduction(+ : saved, losses)
  for (long i = 0; i < count; i++) {
    const Point& point = all.points[i];
    long change = point.cost - distance(point.at, candidate);
    all.switches[i] = change > 0;
    if (change > 0)
      saved += change;
    else
      losses[point.centre] -= change;
  }
  saved -= kOpenCost;
  bool closes[kMostCentres] = {}, closes_any = false;
  for (std::size_t c = 0; c < all.centres.size(); c++) {
    closes[c] = losses[c] < kOpenCost;
    closes_any = closes_any || closes[c];
    if (closes[c]) saved += kOpenCost - losses[c];
  }
  if (saved <= 0 || (!closes_any && all.centres.size() == kMostCentres)) return false;
  int moved_to[kMostCentres], open = 0;
  for (std::size_t c = 0; c < all.centres.size(); c++) {
    moved_to[c] = closes[c] ? -1 : open;
    if (!closes[c]) all.centres[open++] = all.centres[c];
  }
  all.centres.resize(open);
  all.centres.push_back(candidate);
#pragma omp parallel for schedule(UNLIKE_SCHEDULE)
  for (long i = 0; i < count; i++) {
    Point& point = all.points[i];
    bool goes = all.switches[i] || moved_to[point.centre] < 0;
    if (goes) point.cost = distance(point.at, candidate);
    point.centre = goes ? open : moved_to[point.centre];
  }
  return true;
}

void shuffle(std::vector<Point>& points, uint64_t seed) {
  for (std::size_t i = points.size() - 1; i > 0; i--)
    std::swap(points[i], points[mixed(seed * 1000003u + i) % (i + 1)]);
}

}  // namespace

int main(int argc, char** argv) {
  long count = argument(argc, argv, 1, "points", 8192, 2, 1 << 24);
  long candidates = argument(argc, argv, 2, "candidates", 16000, 1, 1 << 24);
  Clusters all = make_clusters(count);
  long opened = 0;
  Timing timing{};
  for (long i = 0; i < candidates; i++) {
    if (i % kCandidatesBetweenShuffles == 0) {
      step_begins(&timing, i / kCandidatesBetweenShuffles);
      shuffle(all.points, static_cast<uint64_t>(i));
    }
    uint64_t pick = mixed(static_cast<uint64_t>(i) + 77) % static_cast<uint64_t>(count);
    if (try_centre(all, all.points[pick].at)) opened++;
  }
  steps_end(&timing);
  double checksum = static_cast<double>(opened) * 1e6;
  for (long i = 0; i < count; i++)
    checksum += static_cast<double>(all.points[i].cost * (i % 7 + 1) + all.points[i].centre);
  return report("stream_cluster", checksum, kExact, &timing);
}
