// SPDX-License-Identifier: Apache-2.0
#include "amasia/mpi.hpp"

namespace amasia::mpi {

future<MPI_Status> library::ibarrier(MPI_Comm comm) {
  return start("ibarrier", [=](MPI_Request* request) { return MPI_Ibarrier(comm, request); });
}

future<MPI_Status> library::ibcast(void* data, int count, MPI_Datatype type, int root,
                                   MPI_Comm comm) {
  return start("ibcast", [=](MPI_Request* request) {
    return MPI_Ibcast(data, count, type, root, comm, request);
  });
}

future<MPI_Status> library::ireduce(const void* from, void* to, int count, MPI_Datatype type,
                                    MPI_Op op, int root, MPI_Comm comm) {
  return start("ireduce", [=](MPI_Request* request) {
    return MPI_Ireduce(from, to, count, type, op, root, comm, request);
  });
}

future<MPI_Status> library::iallreduce(const void* from, void* to, int count, MPI_Datatype type,
                                       MPI_Op op, MPI_Comm comm) {
  return start("iallreduce", [=](MPI_Request* request) {
    return MPI_Iallreduce(from, to, count, type, op, comm, request);
  });
}

future<MPI_Status> library::igather(const void* from, int from_count, MPI_Datatype from_type,
                                    void* to, int to_count, MPI_Datatype to_type, int root,
                                    MPI_Comm comm) {
  return start("igather", [=](MPI_Request* request) {
    return MPI_Igather(from, from_count, from_type, to, to_count, to_type, root, comm, request);
  });
}

future<MPI_Status> library::iallgather(const void* from, int from_count, MPI_Datatype from_type,
                                       void* to, int to_count, MPI_Datatype to_type,
                                       MPI_Comm comm) {
  return start("iallgather", [=](MPI_Request* request) {
    return MPI_Iallgather(from, from_count, from_type, to, to_count, to_type, comm, request);
  });
}

future<MPI_Status> library::iscatter(const void* from, int from_count, MPI_Datatype from_type,
                                     void* to, int to_count, MPI_Datatype to_type, int root,
                                     MPI_Comm comm) {
  return start("iscatter", [=](MPI_Request* request) {
    return MPI_Iscatter(from, from_count, from_type, to, to_count, to_type, root, comm, request);
  });
}

future<MPI_Status> library::ialltoall(const void* from, int from_count, MPI_Datatype from_type,
                                      void* to, int to_count, MPI_Datatype to_type,
                                      MPI_Comm comm) {
  return start("ialltoall", [=](MPI_Request* request) {
    return MPI_Ialltoall(from, from_count, from_type, to, to_count, to_type, comm, request);
  });
}

future<MPI_Status> library::ialltoallv(const void* from, const int* from_counts,
                                       const int* from_offsets, MPI_Datatype from_type, void* to,
                                       const int* to_counts, const int* to_offsets,
                                       MPI_Datatype to_type, MPI_Comm comm) {
  return start("ialltoallv", [=](MPI_Request* request) {
    return MPI_Ialltoallv(from, from_counts, from_offsets, from_type, to, to_counts, to_offsets,
                          to_type, comm, request);
  });
}

}  // namespace amasia::mpi
