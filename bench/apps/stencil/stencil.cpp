// SPDX-License-Identifier: Apache-2.0
// The three-dimensional 7-point stencil of HiPER (IPDPSW 2017, section II-D): a grid divided among
// ranks in z, whose border planes are exchanged in every step.
//
//   tasks    border planes first, then the inside, while messages travel
//   openmp   MPI+OpenMP as in the paper: borders, then MPI_Isend and MPI_Irecv, then the inside,
//            then MPI_Waitall
//   tests    the same, with MPI_Testall between planes: what one adds by hand for overlap
//
// Verified: all give the same grid, bit for bit, as one rank alone that computes all of it.
// --bound: the first two once more with each rank's planes by themselves, "alone" and "o. alone":
// what messages cost is the difference, and who hides them altogether cannot be quicker than that.
// Run: mpirun -np N stencil [--quick] [--bound] [--size X Y Z] [--steps T] [--threads W]
//      [--rounds R]
#include "../../tasks/harness.hpp"
#include "amasia/mpi.hpp"
#include "grid.hpp"

namespace mpi = amasia::mpi;
namespace tasks = amasia::tasks;

namespace {

using namespace stencil;

Grid with_tasks(mpi::library& mpi, const Shape& shape, const Part& part) {
  Grid now(shape, part.planes), next(shape, part.planes);
  now.fill(part.first);
  const int cells = static_cast<int>(now.plane_cells()), last = part.planes;
  const auto exchange = [&](Grid& grid) {
    mpi.irecv(grid.plane(0), cells, MPI_DOUBLE, part.below(), kUp);
    mpi.irecv(grid.plane(last + 1), cells, MPI_DOUBLE, part.above(), kDown);
    mpi.isend(grid.plane(1), cells, MPI_DOUBLE, part.below(), kDown);
    mpi.isend(grid.plane(last), cells, MPI_DOUBLE, part.above(), kUp);
  };
  tasks::finish([&] { exchange(now); });
  for (int step = 0; step < shape.steps; ++step) {
    // The planes that neighbours wait for, then, while those travel, all others.
    tasks::forasync(tasks::range<1>{{0}, {last > 1 ? 2 : 1}, {1}},
                    [&](std::ptrdiff_t side) { now.compute(next, side == 0 ? 1 : last); });
    tasks::finish([&] {
      exchange(next);
      tasks::forasync(tasks::range<1>{{2}, {last}, {1}},
                      [&](std::ptrdiff_t z) { now.compute(next, static_cast<int>(z)); });
    });
    std::swap(now, next);
  }
  return now;
}

}  // namespace

int main(int argc, char** argv) {
  const Setting setting = setting_of(argc, argv);
  const Shape& shape = setting.shape;
  const unsigned threads = setting.threads;
  omp_set_num_threads(static_cast<int>(threads));
  tasks::runtime workers({.workers = threads});
  mpi::library mpi(workers, &argc, &argv);
  const Part part(shape, mpi.rank(), mpi.size());
  if (!begins(part)) return 2;
  const Grid whole = alone(shape);
  int wrong = 0;
  const double updates =
      static_cast<double>(shape.x) * shape.y * shape.z * shape.steps / part.ranks;
  const auto by_tasks = [&] {
    const Grid grid = workers.run([&] { return with_tasks(mpi, shape, part); });
    wrong += !is_part_of(grid, whole, part);
  };
  const auto by_openmp = [&] { wrong += !is_part_of(with_openmp(shape, part), whole, part); };
  const auto by_tests = [&] { wrong += !is_part_of(with_openmp<true>(shape, part), whole, part); };
  std::vector<bench::Way> ways = {
      {"amasia", by_tasks}, {"openmp", by_openmp}, {"tests", by_tests}};
  Part lonely = part;
  lonely.has_neighbours = false;
  const Grid mine = alone(shape, part.first, part.planes);
  // Who comes next is not to wait for a rank that has been slower here.
  const auto ends_alone = [&](const Grid& grid) {
    wrong += !is_part_of(grid, mine, 0);
    MPI_Barrier(MPI_COMM_WORLD);
  };
  if (setting.bound) {
    ways.push_back({"alone", [&] {
                      ends_alone(workers.run([&] { return with_tasks(mpi, shape, lonely); }));
                    }});
    ways.push_back({"o. alone", [&] { ends_alone(with_openmp(shape, lonely)); }});
  }
  bench::compare("stencil", threads, updates, "cell", ways, setting.rounds);
  return verdict(wrong);
}
