// SPDX-License-Identifier: Apache-2.0
// A number goes round all ranks, and each adds its own: built and run against the installed module.
#include <amasia/mpi.hpp>
#include <cstdio>

int main(int argc, char** argv) {
  amasia::tasks::runtime workers({.workers = 2});
  amasia::mpi::library mpi(workers, &argc, &argv);
  const int rank = mpi.rank(), size = mpi.size();
  workers.run([&] {
    long sum = 0;
    const auto here = mpi.irecv(&sum, 1, MPI_LONG, (rank + size - 1) % size, 0);
    if (rank == 0) {
      long one = 1;
      mpi.send(&one, 1, MPI_LONG, 1 % size, 0);
    }
    amasia::tasks::async_await(
        [&] {
          sum += rank;
          if (rank != 0) mpi.send(&sum, 1, MPI_LONG, (rank + 1) % size, 0);
          if (rank == 0) std::printf("sum %ld of %d ranks\n", sum, size);
        },
        here);
  });
}
