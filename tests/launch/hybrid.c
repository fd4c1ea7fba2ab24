// SPDX-License-Identifier: Apache-2.0
// An MPI program with an OpenMP region, as many are: MPI starts threads of its own, and those of
// its libraries that the runtime uses as well. With an argument it asks for MPI on all threads.
#include <mpi.h>
#include <stdio.h>

int main(int count, char** values) {
  if (count == 1) {
    MPI_Init(&count, &values);
  } else {
    int provided = 0;
    MPI_Init_thread(&count, &values, MPI_THREAD_MULTIPLE, &provided);
  }
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
  long all = 0;
  MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  printf("%d %ld\n", ranks, all);
  MPI_Finalize();
  return 0;
}
