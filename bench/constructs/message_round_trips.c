// SPDX-License-Identifier: Apache-2.0
// The peer of constructs.c: what MPI takes, on as many processes, for a barrier, for a round trip
// of 8 bytes between rank 0 and 1, and for a sum over all. Same output: name, median, MAD, in
// microseconds.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBatches = 31, kRepeats = 200 };

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

static void barrier(int rank) {
  (void)rank;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void round_trip(int rank) {
  double value = 0;
  if (rank == 0) {
    MPI_Send(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  }
}

static void sum(int rank) {
  double mine = rank, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void measure(const char *name, void (*operation)(int), int rank) {
  double microseconds[kBatches], deviation[kBatches];
  for (int batch = -1; batch < kBatches; ++batch) {  // the first is not counted
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < kRepeats; ++i) operation(rank);
    if (batch >= 0) microseconds[batch] = (MPI_Wtime() - start) * 1e6 / kRepeats;
  }
  const double middle = median(microseconds, kBatches);
  for (int i = 0; i < kBatches; ++i) {
    deviation[i] = microseconds[i] > middle ? microseconds[i] - middle : middle - microseconds[i];
  }
  if (rank == 0) printf("%-10s %10.3f %10.3f\n", name, middle, median(deviation, kBatches));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  measure("barrier", barrier, rank);
  measure("round_trip", round_trip, rank);
  measure("allreduce", sum, rank);
  MPI_Finalize();
  return 0;
}
