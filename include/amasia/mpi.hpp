// SPDX-License-Identifier: Apache-2.0
// MPI in tasks: operations are futures, and waiting for one never blocks a core. Link
// amasia-tasks-mpi. docs/modules.md has the rules that hold for all modules.
//
// MPI is called by one thread, that of run(), as MPI_THREAD_FUNNELED allows. A task's operations
// reach MPI in the order in which the task started them. The blocking forms start the non-blocking
// operation and wait in the task, so two tasks of one rank may send to and receive from each other.
// Order between tasks, and which rank takes part in which collective, is the program's matter, as
// it is in MPI. All but rank(), size() and the constructor: in tasks only.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "amasia/module.h"

namespace amasia::mpi {

template <typename T>
using future = tasks::future<T>;

// What MPI reported: the operation's name and MPI_Error_string's text.
class AMASIA_TASKS_API error : public std::runtime_error {
 public:
  error(const char* operation, int mpi_code);
  int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {
inline auto send_starter(const void* from, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm) {
  return [=](MPI_Request* request) {
    return MPI_Isend(from, count, type, to, tag, comm, request);
  };
}
inline auto receive_starter(void* to, int count, MPI_Datatype type, int from, int tag,
                            MPI_Comm comm) {
  return [=](MPI_Request* request) {
    return MPI_Irecv(to, count, type, from, tag, comm, request);
  };
}
}  // namespace detail

class AMASIA_TASKS_API library : public tasks::module {
 public:
  // MPI_Init_thread, unless that was done before, on this thread; MPI_Finalize then is this
  // object's, too. Errors of MPI_COMM_WORLD and what is made of it are returned from here on
  // (MPI_ERRORS_RETURN), not fatal. Throws error, or std::runtime_error where MPI gives less than
  // MPI_THREAD_FUNNELED.
  explicit library(tasks::runtime& workers, int* argc = nullptr, char*** argv = nullptr);
  ~library() override;

  int rank(MPI_Comm comm = MPI_COMM_WORLD) const;
  int size(MPI_Comm comm = MPI_COMM_WORLD) const;

  // Any non-blocking operation of MPI: start(&request) calls it and returns its error code. For all
  // that has no function here; `name` is for messages, and lives on.
  template <typename Start>
  future<MPI_Status> start(const char* name, Start start) {
    return start_and(kTest, name, std::move(start));
  }
  // The same, begun when all of the futures are ready. If one of them has an exception, nothing is
  // started, and the result has that exception.
  template <typename Start, typename... Futures>
  future<MPI_Status> start_await(const char* name, Start start, const Futures&... awaited) {
    tasks::promise<MPI_Status> result;
    auto value = result.get_future();
    tasks::async_await(
        [this, name, start = std::move(start), result = std::move(result), awaited...]() mutable {
          try {
            (static_cast<void>(awaited.get()), ...);
          } catch (...) {
            return result.fail(std::current_exception());
          }
          start_into(kTest, name, std::move(start), std::move(result));
        },
        awaited...);
    return value;
  }
  // Any other function of MPI, on the thread of MPI: body() returns an error code. It must not wait
  // for another rank: worker 0 would be blocked.
  template <typename Body>
  future<void> call(const char* name, Body body) {
    tasks::promise<void> result;
    auto value = result.get_future();
    host_->call([name, body = std::move(body), result = std::move(result),
                 held = host_->hold_scope()]() mutable { put(name, body(), result); });
    return value;
  }

  // Buffers stay untouched (of sends) or unread (of receives) until the future is ready.
  future<MPI_Status> isend(const void* from, int count, MPI_Datatype type, int to, int tag,
                           MPI_Comm comm = MPI_COMM_WORLD) {
    return start("isend", detail::send_starter(from, count, type, to, tag, comm));
  }
  future<MPI_Status> irecv(void* to, int count, MPI_Datatype type, int from, int tag,
                           MPI_Comm comm = MPI_COMM_WORLD) {
    return start_and(kLeave, "irecv", detail::receive_starter(to, count, type, from, tag, comm));
  }
  template <typename... Futures>
  future<MPI_Status> isend_await(const void* from, int count, MPI_Datatype type, int to, int tag,
                                 MPI_Comm comm, const Futures&... awaited) {
    return start_await("isend",
                       detail::send_starter(from, count, type, to, tag, comm), awaited...);
  }
  template <typename... Futures>
  future<MPI_Status> irecv_await(void* to, int count, MPI_Datatype type, int from, int tag,
                                 MPI_Comm comm, const Futures&... awaited) {
    return start_await("irecv",
                       detail::receive_starter(to, count, type, from, tag, comm), awaited...);
  }
  void send(const void* from, int count, MPI_Datatype type, int to, int tag,
            MPI_Comm comm = MPI_COMM_WORLD) {
    isend(from, count, type, to, tag, comm).get();
  }
  MPI_Status recv(void* to, int count, MPI_Datatype type, int from, int tag,
                  MPI_Comm comm = MPI_COMM_WORLD) {
    return irecv(to, count, type, from, tag, comm).get();
  }

  // Collectives: one task of each rank takes part, in the same order on all ranks.
  future<MPI_Status> ibarrier(MPI_Comm comm = MPI_COMM_WORLD);
  future<MPI_Status> ibcast(void* data, int count, MPI_Datatype type, int root,
                            MPI_Comm comm = MPI_COMM_WORLD);
  future<MPI_Status> ireduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             int root, MPI_Comm comm = MPI_COMM_WORLD);
  future<MPI_Status> iallreduce(const void* from, void* to, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm = MPI_COMM_WORLD);
  // Counts are those of one rank, as MPI's are.
  future<MPI_Status> igather(const void* from, int from_count, MPI_Datatype from_type, void* to,
                             int to_count, MPI_Datatype to_type, int root,
                             MPI_Comm comm = MPI_COMM_WORLD);
  future<MPI_Status> iallgather(const void* from, int from_count, MPI_Datatype from_type, void* to,
                                int to_count, MPI_Datatype to_type,
                                MPI_Comm comm = MPI_COMM_WORLD);
  future<MPI_Status> iscatter(const void* from, int from_count, MPI_Datatype from_type, void* to,
                              int to_count, MPI_Datatype to_type, int root,
                              MPI_Comm comm = MPI_COMM_WORLD);
  future<MPI_Status> ialltoall(const void* from, int from_count, MPI_Datatype from_type, void* to,
                               int to_count, MPI_Datatype to_type, MPI_Comm comm = MPI_COMM_WORLD);
  // The four arrays of counts and displacements are read until the future is ready.
  future<MPI_Status> ialltoallv(const void* from, const int* from_counts, const int* from_offsets,
                                MPI_Datatype from_type, void* to, const int* to_counts,
                                const int* to_offsets, MPI_Datatype to_type,
                                MPI_Comm comm = MPI_COMM_WORLD);

  // The same, waiting in the task. Arguments as above.
  template <typename... Arguments>
  void barrier(Arguments... arguments) {
    ibarrier(arguments...).get();
  }
  template <typename... Arguments>
  void bcast(Arguments... arguments) {
    ibcast(arguments...).get();
  }
  template <typename... Arguments>
  void reduce(Arguments... arguments) {
    ireduce(arguments...).get();
  }
  template <typename... Arguments>
  void allreduce(Arguments... arguments) {
    iallreduce(arguments...).get();
  }
  template <typename... Arguments>
  void gather(Arguments... arguments) {
    igather(arguments...).get();
  }
  template <typename... Arguments>
  void allgather(Arguments... arguments) {
    iallgather(arguments...).get();
  }
  template <typename... Arguments>
  void scatter(Arguments... arguments) {
    iscatter(arguments...).get();
  }
  template <typename... Arguments>
  void alltoall(Arguments... arguments) {
    ialltoall(arguments...).get();
  }
  template <typename... Arguments>
  void alltoallv(Arguments... arguments) {
    ialltoallv(arguments...).get();
  }

  // Of the runtime, on the thread of run().
  const char* name() const noexcept override { return "mpi"; }
  void initialise(tasks::module_host& host) override;
  void finalise() noexcept override;
  tasks::poll_result poll() noexcept override;

 private:
  struct Operation {
    const char* name;
    tasks::promise<MPI_Status> result;
    tasks::hold held;
  };
  // Once it is begun: sends of few bytes are over by then, and a test tells. A receive seldom is,
  // and each test that finds nothing has MPI look at all that it has: that is left to the poll,
  // which does so once for all of them.
  enum Begun { kTest, kLeave };
  template <typename Start>
  future<MPI_Status> start_and(Begun then, const char* name, Start start) {
    tasks::promise<MPI_Status> result;
    auto value = result.get_future();
    start_into(then, name, std::move(start), std::move(result));
    return value;
  }
  template <typename Start>
  void start_into(Begun then, const char* name, Start start, tasks::promise<MPI_Status> result) {
    host_->call([this, then, start = std::move(start),
                 operation = Operation{name, std::move(result), host_->hold_scope()}]() mutable {
      MPI_Request request = MPI_REQUEST_NULL;
      const int code = start(&request);
      started(then, std::move(operation), request, code);
    });
  }
  void started(Begun then, Operation operation, MPI_Request request, int code) noexcept;
  static void put(const char* name, int code, tasks::promise<void>& result) noexcept;
  static void complete(Operation& operation, int code, const MPI_Status& status) noexcept;

  bool test(std::size_t begin, std::size_t end) noexcept;
  void forget_those_over() noexcept;

  tasks::runtime& workers_;
  int* const argc_;
  char*** const argv_;
  tasks::module_host* host_ = nullptr;
  bool finalises_ = false;
  // Those under way, in the order in which they began; the same index in both. Those before
  // first_ are over, and some of the others (MPI_REQUEST_NULL).
  std::size_t first_ = 0, active_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Operation> operations_;
  // Of one poll; kept for their memory.
  std::vector<int> over_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace amasia::mpi
