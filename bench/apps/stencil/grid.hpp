// SPDX-License-Identifier: Apache-2.0
// What the variants of the stencil share: the grid, its parts, the MPI+OpenMP peer, and all of it
// computed by one rank alone, which the others are verified against.
#pragma once

#include <mpi.h>
#include <omp.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace stencil {

struct Shape {
  int x = 96, y = 96, z = 96;  // of all ranks together; z is divided
  int steps = 20;
};

// Of one rank: z planes, and one more on either side, which are a neighbour's or the border (zero).
class Grid {
 public:
  Grid(const Shape& shape, int planes)
      : x_(shape.x), y_(shape.y), planes_(planes), cells_(plane_cells() * (planes + 2)) {}
  std::size_t plane_cells() const { return static_cast<std::size_t>(x_) * y_; }
  int planes() const { return planes_; }
  double* plane(int z) { return &cells_[plane_cells() * static_cast<std::size_t>(z)]; }
  const double* plane(int z) const { return &cells_[plane_cells() * static_cast<std::size_t>(z)]; }

  void fill(int first_plane) {
    for (int z = 1; z <= planes_; ++z) {
      for (std::size_t n = 0; n < plane_cells(); ++n) {
        plane(z)[n] = std::sin(0.01 * static_cast<double>(n) + 0.3 * (first_plane + z));
      }
    }
  }
  // Planes 1 to planes() of `next` from this one; the outermost cells in x and y stay zero. The
  // same machine code for all ways: what a compiler makes of each inlined copy differs by a tenth.
  [[gnu::noinline]] void compute(Grid& next, int z) const {
    const double* const below = plane(z - 1);
    const double* const here = plane(z);
    const double* const above = plane(z + 1);
    double* const out = next.plane(z);
    for (int y = 1; y < y_ - 1; ++y) {
      const int row = y * x_;
      for (int n = row + 1; n < row + x_ - 1; ++n) {
        out[n] = 0.4 * here[n] + 0.1 * (here[n - 1] + here[n + 1] + here[n - x_] + here[n + x_] +
                                        below[n] + above[n]);
      }
    }
  }

 private:
  int x_, y_, planes_;
  std::vector<double> cells_;
};

struct Part {
  int rank, ranks, first, planes;
  bool has_neighbours = true;  // else nothing is sent: what the messages cost is the difference
  Part(const Shape& shape, int rank_in, int ranks_in)
      : rank(rank_in),
        ranks(ranks_in),
        first(shape.z * rank_in / ranks_in),
        planes(shape.z * (rank_in + 1) / ranks_in - first) {}
  int below() const { return has_neighbours && rank > 0 ? rank - 1 : MPI_PROC_NULL; }
  int above() const {
    return has_neighbours && rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  }
};

inline constexpr int kUp = 1, kDown = 2;

// kTests: while the inside is computed MPI is given its turn after each of the first thread's
// planes, without which it does nothing for long messages before the wait.
template <bool kTests = false>
Grid with_openmp(const Shape& shape, const Part& part) {
  Grid now(shape, part.planes), next(shape, part.planes);
  now.fill(part.first);
  const int cells = static_cast<int>(now.plane_cells()), last = part.planes;
  MPI_Request requests[4];
  const auto begin = [&](Grid& grid) {
    MPI_Isend(grid.plane(1), cells, MPI_DOUBLE, part.below(), kDown, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(grid.plane(last), cells, MPI_DOUBLE, part.above(), kUp, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Irecv(grid.plane(0), cells, MPI_DOUBLE, part.below(), kUp, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(grid.plane(last + 1), cells, MPI_DOUBLE, part.above(), kDown, MPI_COMM_WORLD,
              &requests[3]);
  };
  begin(now);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  for (int step = 0; step < shape.steps; ++step) {
#pragma omp parallel for schedule(static, 1)
    for (int side = 0; side < 2; ++side) {
      if (side == 0) now.compute(next, 1);
      if (side == 1 && last > 1) now.compute(next, last);
    }
    begin(next);
#pragma omp parallel for
    for (int z = 2; z < last; ++z) {
      now.compute(next, z);
      if constexpr (kTests) {
        int over = 0;
        if (omp_get_thread_num() == 0) MPI_Testall(4, requests, &over, MPI_STATUSES_IGNORE);
      }
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    std::swap(now, next);
  }
  return now;
}

// Some planes without those around them, computed here by one thread.
inline Grid alone(const Shape& shape, int first, int planes) {
  Grid now(shape, planes), next(shape, planes);
  now.fill(first);
  for (int step = 0; step < shape.steps; ++step) {
    for (int z = 1; z <= planes; ++z) now.compute(next, z);
    std::swap(now, next);
  }
  return now;
}

// Of all ranks together.
inline Grid alone(const Shape& shape) { return alone(shape, 0, shape.z); }

// Whether the planes of `grid` are those of `whole` that come after its first `skipped` ones.
inline bool is_part_of(const Grid& grid, const Grid& whole, int skipped) {
  const std::size_t bytes = grid.plane_cells() * sizeof(double);
  for (int z = 1; z <= grid.planes(); ++z) {
    if (std::memcmp(grid.plane(z), whole.plane(skipped + z), bytes) != 0) return false;
  }
  return true;
}
inline bool is_part_of(const Grid& grid, const Grid& whole, const Part& part) {
  return is_part_of(grid, whole, part.first);
}

struct Setting {
  Shape shape;
  unsigned threads = 2;
  int rounds = 5;
  bool bound = false;
};

inline Setting setting_of(int argc, char** argv) {
  Setting out;
  Shape& shape = out.shape;
  for (int n = 1; n < argc; ++n) {
    const auto next = [&] { return n + 1 < argc ? std::atoi(argv[++n]) : 0; };
    if (std::strcmp(argv[n], "--quick") == 0) shape = {34, 30, 21, 7}, out.rounds = 1;
    if (std::strcmp(argv[n], "--size") == 0) shape.x = next(), shape.y = next(), shape.z = next();
    if (std::strcmp(argv[n], "--steps") == 0) shape.steps = next();
    if (std::strcmp(argv[n], "--threads") == 0) out.threads = static_cast<unsigned>(next());
    if (std::strcmp(argv[n], "--rounds") == 0) out.rounds = next();
    if (std::strcmp(argv[n], "--bound") == 0) out.bound = true;
  }
  return out;
}

// Whether there is a plane for each rank; only rank 0 prints from here on. Else it says so.
inline bool begins(const Part& part) {
  if (part.planes < 1) {
    if (part.rank == 0) std::fprintf(stderr, "stencil: there are fewer planes than ranks\n");
    return false;
  }
  return part.rank == 0 || std::freopen("/dev/null", "w", stdout) != nullptr;
}

// Of all ranks; the exit code.
inline int verdict(int wrong) {
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  std::printf("%s\n", all_wrong == 0 ? "verified" : "WRONG");
  return all_wrong == 0 ? 0 : 1;
}

}  // namespace stencil
