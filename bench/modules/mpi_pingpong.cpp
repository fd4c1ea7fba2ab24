// SPDX-License-Identifier: Apache-2.0
// Question: what does a message cost in a task, against MPI itself?
//
// Two ranks send a message to and fro. "amasia" waits in a task, "blocking" in MPI_Send and
// MPI_Recv, "request" in MPI_Isend, MPI_Irecv and MPI_Waitall. Expected: the module's closure,
// promise, request list and poll are some 0.3 us a message on one worker; with two workers,
// when the task is not on that of run(), a hand-over on top.
// Then one rank sends many small messages that lie under way together, "window", as in the OSU
// benchmarks: what the module costs a core where latency does not hide it.
// Run: mpirun -np 2 [--oversubscribe --allow-run-as-root --bind-to none] mpi_pingpong
// [--quick | rounds [text]]: all questions, or those with the text in their name.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../tasks/harness.hpp"
#include "amasia/mpi.hpp"

namespace mpi = amasia::mpi;
namespace tasks = amasia::tasks;

namespace {

struct Exchange {
  int rank, bytes, messages;
  std::vector<char> data = std::vector<char>(static_cast<std::size_t>(bytes));

  void blocking() {
    for (int n = 0; n < messages; ++n) {
      for (int turn = 0; turn < 2; ++turn) {
        if (turn == rank) {
          MPI_Send(data.data(), bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
        } else {
          MPI_Recv(data.data(), bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
      }
    }
  }
  void requests() {
    for (int n = 0; n < messages; ++n) {
      for (int turn = 0; turn < 2; ++turn) {
        MPI_Request request;
        if (turn == rank) {
          MPI_Isend(data.data(), bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &request);
        } else {
          MPI_Irecv(data.data(), bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &request);
        }
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
      }
    }
  }
  void in_tasks(mpi::library& mpi) {
    for (int n = 0; n < messages; ++n) {
      for (int turn = 0; turn < 2; ++turn) {
        if (turn == rank) {
          mpi.send(data.data(), bytes, MPI_BYTE, 1 - rank, 1);
        } else {
          mpi.recv(data.data(), bytes, MPI_BYTE, 1 - rank, 1);
        }
      }
    }
  }
};

struct Window {
  static constexpr int kAtOnce = 64;
  int rank, windows;
  std::vector<long> data = std::vector<long>(kAtOnce);

  void requests() {
    for (int n = 0; n < windows; ++n) {
      std::vector<MPI_Request> all(kAtOnce);
      for (std::size_t k = 0; k < kAtOnce; ++k) {
        if (rank == 0) MPI_Isend(&data[k], 1, MPI_LONG, 1, 2, MPI_COMM_WORLD, &all[k]);
        if (rank == 1) MPI_Irecv(&data[k], 1, MPI_LONG, 0, 2, MPI_COMM_WORLD, &all[k]);
      }
      MPI_Waitall(kAtOnce, all.data(), MPI_STATUSES_IGNORE);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  void in_tasks(mpi::library& mpi) {
    for (int n = 0; n < windows; ++n) {
      tasks::finish([&] {
        for (std::size_t k = 0; k < kAtOnce; ++k) {
          if (rank == 0) mpi.isend(&data[k], 1, MPI_LONG, 1, 2);
          if (rank == 1) mpi.irecv(&data[k], 1, MPI_LONG, 0, 2);
        }
      });
      mpi.barrier();
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  int provided = 0, rank = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    if (rank == 0) std::fprintf(stderr, "mpi_pingpong: there are %d ranks (it takes 2)\n", size);
    MPI_Finalize();
    return 2;
  }
  if (rank != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) std::abort();
  const std::string asked = argc > 2 ? argv[2] : "";
  const auto is_asked = [&](const std::string& question) {
    return question.find(asked) != std::string::npos;
  };
  for (const unsigned workers : {1u, 2u}) {
    tasks::runtime runtime({.workers = workers});
    mpi::library mpi(runtime);
    const int rounds = quick ? 1 : argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
    for (const int bytes : {8, 4096, 1 << 20}) {
      Exchange exchange{rank, bytes, quick ? 10 : bytes > 100'000 ? 200 : 5'000};
      const std::string question = "ping-pong " + std::to_string(bytes);
      if (!is_asked(question)) continue;
      bench::compare(question, workers, 2.0 * exchange.messages, "message",
                     {{"amasia", [&] { runtime.run([&] { exchange.in_tasks(mpi); }); }},
                      {"blocking", [&] { exchange.blocking(); }},
                      {"request", [&] { exchange.requests(); }}},
                     rounds);
    }
    if (!is_asked("window of 64")) continue;
    Window window{rank, quick ? 2 : 200};
    bench::compare("window of 64", workers, static_cast<double>(window.windows) * window.kAtOnce,
                   "message",
                   {{"amasia", [&] { runtime.run([&] { window.in_tasks(mpi); }); }},
                    {"request", [&] { window.requests(); }}},
                   rounds);
  }
  MPI_Finalize();
}
