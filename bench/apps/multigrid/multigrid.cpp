// SPDX-License-Identifier: Apache-2.0
// Geometric multigrid: Poisson's equation in the unit cube, zero at its faces, cells of equal size,
// divided among ranks in z. V-cycles with two Jacobi sweeps before and after, averages of eight
// cells down, their values up.
//
//   tasks    in each sweep the inner planes are computed while halos travel; the border planes wait
//            for theirs alone
//   openmp   MPI+OpenMP: MPI_Sendrecv, then a parallel loop over all planes
//
// Verified: both ways give the same bits; the residual has become small; and the solution is that
// of the equation (a product of sines) but for the error of the grid, of second order.
// Run: mpirun -np N multigrid [--quick] [--cells N] [--cycles C] [--threads W] [--rounds R]
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <vector>

#include "../../tasks/harness.hpp"
#include "amasia/mpi.hpp"

namespace mpi = amasia::mpi;
namespace tasks = amasia::tasks;

namespace {

// A grid of n * n * planes cells of this rank, with a plane of a neighbour on either side.
struct Level {
  int n, planes;
  double h;
  std::vector<double> u, f, r;  // solution, right side, residual or the next solution

  Level(int n_in, int planes_in)
      : n(n_in), planes(planes_in), h(1.0 / n), u(cells()), f(cells()), r(cells()) {}
  std::size_t plane() const { return static_cast<std::size_t>(n) * n; }
  std::size_t cells() const { return plane() * (planes + 2); }
  std::size_t at(int z) const { return plane() * static_cast<std::size_t>(z); }

  // 6 u - (sum of the neighbours), where beyond a face of the cube lies -u.
  double applied(std::size_t cell, int x, int y) const {
    const double here = u[cell];
    const std::size_t row = static_cast<std::size_t>(n);
    double sum = u[cell - plane()] + u[cell + plane()];
    sum += (x > 0 ? u[cell - 1] : -here) + (x + 1 < n ? u[cell + 1] : -here);
    sum += (y > 0 ? u[cell - row] : -here) + (y + 1 < n ? u[cell + row] : -here);
    return 6 * here - sum;
  }
  template <typename Cell>
  void each(int z, Cell cell) {
    std::size_t index = at(z);
    for (int y = 0; y < n; ++y) {
      for (int x = 0; x < n; ++x, ++index) cell(index, x, y);
    }
  }
  void smooth(int z) {  // Jacobi, weight 6/7; into r
    each(z, [&](std::size_t c, int x, int y) {
      r[c] = u[c] + (h * h * f[c] - applied(c, x, y)) / 7;
    });
  }
  void find_residual(int z) {
    each(z, [&](std::size_t c, int x, int y) { r[c] = f[c] - applied(c, x, y) / (h * h); });
  }
  void restrict_to(Level& coarse, int z) const {
    coarse.each(z, [&](std::size_t c, int x, int y) {
      const std::size_t low = at(2 * z - 1) + static_cast<std::size_t>(2 * y * n + 2 * x);
      double sum = 0;
      for (const std::size_t corner : {low, low + plane()}) {
        const auto row = static_cast<std::size_t>(n);
        sum += r[corner] + r[corner + 1] + r[corner + row] + r[corner + row + 1];
      }
      coarse.f[c] = sum / 8;
      coarse.u[c] = 0;
    });
  }
  void add_from(const Level& coarse, int z) {
    const auto row = static_cast<std::size_t>(coarse.n);
    each(z, [&](std::size_t c, int x, int y) {
      u[c] += coarse.u[coarse.at((z + 1) / 2) + static_cast<std::size_t>(y / 2) * row +
                       static_cast<std::size_t>(x / 2)];
    });
  }
  // The cube's faces below and above, where no rank is.
  void reflect(int border, int inner) {
    for (std::size_t c = 0; c < plane(); ++c) u[at(border) + c] = -u[at(inner) + c];
  }
};

struct Neighbours {
  int below, above;
  Neighbours(int rank, int ranks)
      : below(rank > 0 ? rank - 1 : MPI_PROC_NULL),
        above(rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL) {}
};
constexpr int kUp = 1, kDown = 2;

// A way has for_planes(level, kernel), and with_halo(level, kernel): planes of u beyond are there.
struct ByTasks {
  mpi::library& mpi;
  Neighbours to;

  template <typename Kernel>
  void for_planes(Level& level, Kernel kernel) {
    for_planes(1, level.planes + 1, kernel);
  }
  template <typename Kernel>
  static void for_planes(int low, int high, Kernel kernel) {
    tasks::forasync(tasks::range<1>{{low}, {high}, {1}},
                    [&](std::ptrdiff_t z) { kernel(static_cast<int>(z)); });
  }
  template <typename Kernel>
  void with_halo(Level& level, Kernel kernel) {
    const int cells = static_cast<int>(level.plane()), last = level.planes;
    double* const u = level.u.data();
    if (to.below == MPI_PROC_NULL) level.reflect(0, 1);
    if (to.above == MPI_PROC_NULL) level.reflect(last + 1, last);
    // Planes next to a neighbour's wait for it; all others are one loop.
    const bool below = to.below != MPI_PROC_NULL, above = to.above != MPI_PROC_NULL;
    tasks::finish([&] {
      tasks::future<MPI_Status> low, high;
      if (below) low = mpi.irecv(u, cells, MPI_DOUBLE, to.below, kUp);
      if (above) high = mpi.irecv(u + level.at(last + 1), cells, MPI_DOUBLE, to.above, kDown);
      if (below) mpi.isend(u + level.at(1), cells, MPI_DOUBLE, to.below, kDown);
      if (above) mpi.isend(u + level.at(last), cells, MPI_DOUBLE, to.above, kUp);
      const bool one = last == 1 && below && above;
      if (one) tasks::async_await([&] { kernel(1); }, low, high);
      if (below && !one) tasks::async_await([&] { kernel(1); }, low);
      if (above && !one) tasks::async_await([&] { kernel(last); }, high);
      for_planes(below ? 2 : 1, above ? last : last + 1, kernel);
    });
  }
};

struct ByOpenmp {
  Neighbours to;

  template <typename Kernel>
  void for_planes(Level& level, Kernel kernel) {
#pragma omp parallel for
    for (int z = 1; z <= level.planes; ++z) kernel(z);
  }
  template <typename Kernel>
  void with_halo(Level& level, Kernel kernel) {
    const int cells = static_cast<int>(level.plane()), last = level.planes;
    double* const u = level.u.data();
    if (to.below == MPI_PROC_NULL) level.reflect(0, 1);
    if (to.above == MPI_PROC_NULL) level.reflect(last + 1, last);
    MPI_Sendrecv(u + level.at(1), cells, MPI_DOUBLE, to.below, kDown, u + level.at(last + 1),
                 cells, MPI_DOUBLE, to.above, kDown, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u + level.at(last), cells, MPI_DOUBLE, to.above, kUp, u, cells, MPI_DOUBLE,
                 to.below, kUp, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for_planes(level, kernel);
  }
};

template <typename Way>
void sweep(Way& way, Level& level, int times) {
  for (int n = 0; n < times; ++n) {
    way.with_halo(level, [&](int z) { level.smooth(z); });
    std::swap(level.u, level.r);
  }
}

template <typename Way>
void cycle(Way& way, std::vector<Level>& levels, std::size_t depth) {
  Level& level = levels[depth];
  if (depth + 1 == levels.size()) return sweep(way, level, 20);
  Level& coarse = levels[depth + 1];
  sweep(way, level, 2);
  way.with_halo(level, [&](int z) { level.find_residual(z); });
  way.for_planes(coarse, [&](int z) { level.restrict_to(coarse, z); });
  cycle(way, levels, depth + 1);
  way.for_planes(level, [&](int z) { level.add_from(coarse, z); });
  sweep(way, level, 2);
}

struct Problem {
  int cells, cycles, rank, ranks;

  double exact(int x, int y, int z) const {
    const double h = 1.0 / cells;
    const auto wave = [&](int k) { return std::sin(std::numbers::pi * (k + 0.5) * h); };
    return wave(x) * wave(y) * wave(z);
  }
  int first() const { return cells / ranks * rank; }

  template <typename Way>
  std::vector<double> solve(Way way, double* residual) const {
    std::vector<Level> levels;
    for (int n = cells, planes = cells / ranks;; n /= 2, planes /= 2) {
      levels.emplace_back(n, planes);
      if (n % 2 != 0 || planes % 2 != 0) break;
    }
    Level& fine = levels.front();
    const double factor = 3 * std::numbers::pi * std::numbers::pi;
    for (int z = 1; z <= fine.planes; ++z) {
      fine.each(z, [&](std::size_t c, int x, int y) {
        fine.f[c] = factor * exact(x, y, first() + z - 1);
      });
    }
    for (int n = 0; n < cycles; ++n) cycle(way, levels, 0);
    way.with_halo(fine, [&](int z) { fine.find_residual(z); });
    *residual = 0;
    for (std::size_t c = fine.at(1); c < fine.at(fine.planes + 1); ++c) {
      *residual = std::max(*residual, std::abs(fine.r[c]) / factor);
    }
    return fine.u;
  }
  bool is_solution(const std::vector<double>& u, double residual) const {
    double error = 0;
    std::size_t c = static_cast<std::size_t>(cells) * cells;
    for (int z = 0; z < cells / ranks; ++z) {
      for (int y = 0; y < cells; ++y) {
        for (int x = 0; x < cells; ++x, ++c) {
          error = std::max(error, std::abs(u[c] - exact(x, y, first() + z)));
        }
      }
    }
    const double h = 1.0 / cells;
    return residual < 1e-3 && error < 1.5 * h * h + residual;
  }
};

}  // namespace

int main(int argc, char** argv) {
  int cells = 64, cycles = 12, rounds = 5;
  unsigned threads = 2;
  for (int n = 1; n < argc; ++n) {
    const auto next = [&] { return n + 1 < argc ? std::atoi(argv[++n]) : 0; };
    if (std::strcmp(argv[n], "--quick") == 0) cells = 8, cycles = 6, rounds = 1;
    if (std::strcmp(argv[n], "--cells") == 0) cells = next();
    if (std::strcmp(argv[n], "--cycles") == 0) cycles = next();
    if (std::strcmp(argv[n], "--threads") == 0) threads = static_cast<unsigned>(next());
    if (std::strcmp(argv[n], "--rounds") == 0) rounds = next();
  }
  omp_set_num_threads(static_cast<int>(threads));
  tasks::runtime workers({.workers = threads});
  mpi::library mpi(workers, &argc, &argv);
  const Problem problem{cells, cycles, mpi.rank(), mpi.size()};
  if (problem.rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 2;
  if (cells < 2 || cells % problem.ranks != 0) {
    std::fprintf(stderr, "multigrid: --cells is %d (it takes a multiple of the %d ranks)\n", cells,
                 problem.ranks);
    return 2;
  }
  const Neighbours to(problem.rank, problem.ranks);
  std::vector<double> by_tasks, by_openmp;
  double residuals[2] = {1, 1};
  bench::compare(
      "multigrid", threads, static_cast<double>(cells) * cells * cells * cycles / problem.ranks,
      "cell and cycle",
      {{"amasia",
        [&] {
          by_tasks = workers.run([&] { return problem.solve(ByTasks{mpi, to}, &residuals[0]); });
        }},
       {"openmp", [&] { by_openmp = problem.solve(ByOpenmp{to}, &residuals[1]); }}},
      rounds);
  const std::size_t plane = static_cast<std::size_t>(cells) * cells;
  int right = std::equal(by_tasks.begin() + static_cast<std::ptrdiff_t>(plane),
                         by_tasks.end() - static_cast<std::ptrdiff_t>(plane),
                         by_openmp.begin() + static_cast<std::ptrdiff_t>(plane)) &&
              problem.is_solution(by_tasks, residuals[0]);
  int all_right = 0;
  MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  std::printf("residual %.2e: %s\n", residuals[0], all_right != 0 ? "verified" : "WRONG");
  return all_right != 0 ? 0 : 1;
}
