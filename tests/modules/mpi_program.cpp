// SPDX-License-Identifier: Apache-2.0
// The mpi module between real ranks. All run the same tests in the same order; run by ranks.py.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "amasia/mpi.hpp"

namespace amasia {
namespace {

struct Job {
  explicit Job(int* argc, char*** argv) : mpi(workers, argc, argv) {}
  tasks::runtime workers{{.workers = 2}};
  mpi::library mpi;
};
Job* job = nullptr;  // main's

class Mpi : public ::testing::Test {
 protected:
  template <typename Body>
  void run(Body body) {
    job->workers.run([&] { body(job->mpi, job->mpi.rank(), job->mpi.size()); });
  }
};

TEST_F(Mpi, ATokenGoesRound) {
  run([](mpi::library& mpi, int rank, int size) {
    int token = 0;
    if (rank == 0) {
      token = 7;
      mpi.send(&token, 1, MPI_INT, 1 % size, 1);
    }
    const MPI_Status status = mpi.recv(&token, 1, MPI_INT, (rank + size - 1) % size, 1);
    EXPECT_EQ(status.MPI_SOURCE, (rank + size - 1) % size);
    ++token;
    if (rank != 0) mpi.send(&token, 1, MPI_INT, (rank + 1) % size, 1);
    EXPECT_EQ(token, rank == 0 ? 7 + size : 7 + rank);
  });
}

// With blocking calls of MPI on one thread this would wait for itself.
TEST_F(Mpi, TwoTasksOfARankTalkToEachOther) {
  run([](mpi::library& mpi, int rank, int) {
    std::vector<int> got(100'000), sent(100'000);  // larger than what MPI buffers
    std::iota(sent.begin(), sent.end(), rank);
    tasks::finish([&] {
      tasks::async([&] { mpi.recv(got.data(), 100'000, MPI_INT, rank, 2); });
      tasks::async([&] { mpi.send(sent.data(), 100'000, MPI_INT, rank, 2); });
    });
    EXPECT_EQ(got, sent);
  });
}

TEST_F(Mpi, KeepsTheOrderOfEachTask) {
  run([](mpi::library& mpi, int rank, int size) {
    constexpr int kMessages = 500;
    std::vector<int> values(kMessages);
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    std::atomic<int> disorder{0};
    tasks::finish([&] {
      tasks::async([&] {
        std::iota(values.begin(), values.end(), 0);
        for (int n = 0; n < kMessages; ++n) {
          mpi.isend(&values[static_cast<std::size_t>(n)], 1, MPI_INT, to, 3);
          if (n % 7 == 0) tasks::yield();
        }
      });
      tasks::async([&] {
        for (int n = 0; n < kMessages; ++n) {
          int value = -1;
          mpi.recv(&value, 1, MPI_INT, from, 3);
          if (value != n) ++disorder;
        }
      });
    });
    EXPECT_EQ(disorder.load(), 0);
  });
}

TEST_F(Mpi, ManyTasksExchangeAtOnce) {
  run([](mpi::library& mpi, int rank, int size) {
    constexpr int kTasks = 300;
    std::atomic<int> wrong{0};
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    tasks::forasync(tasks::range<1>{{0}, {kTasks}, {1}}, [&](std::ptrdiff_t n) {
      const int tag = 1000 + static_cast<int>(n);
      std::vector<long> out(1 + static_cast<std::size_t>(n) * 37, rank * 1000 + n), in(out.size());
      const auto sent = mpi.isend(out.data(), static_cast<int>(out.size()), MPI_LONG, to, tag);
      mpi.recv(in.data(), static_cast<int>(in.size()), MPI_LONG, from, tag);
      sent.wait();
      for (const long value : in) wrong += value != from * 1000 + n;
    });
    EXPECT_EQ(wrong.load(), 0);
  });
}

// The oldest ones are looked at first; here these are over last.
TEST_F(Mpi, WhoWaitsLongHoldsUpNoOther) {
  run([](mpi::library& mpi, int rank, int size) {
    constexpr std::size_t kLong = 20, kMessages = 300;
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    std::vector<int> last(kLong, -1), values(kMessages, -1);
    std::vector<tasks::future<MPI_Status>> long_ones, others;
    for (int& one : last) long_ones.push_back(mpi.irecv(&one, 1, MPI_INT, from, 8));
    for (int& one : values) others.push_back(mpi.irecv(&one, 1, MPI_INT, from, 9));
    for (std::size_t n = 0; n < kMessages; ++n) {
      const int value = static_cast<int>(n);
      mpi.send(&value, 1, MPI_INT, to, 9);
    }
    for (std::size_t n = kMessages; n-- > 0;) {
      others[n].wait();
      EXPECT_EQ(values[n], static_cast<int>(n));
    }
    for (const auto& one : long_ones) EXPECT_FALSE(one.ready());
    mpi.barrier();
    for (int n = 0; n < static_cast<int>(kLong); ++n) mpi.send(&n, 1, MPI_INT, to, 8);
    for (std::size_t n = 0; n < kLong; ++n) {
      long_ones[n].wait();
      EXPECT_EQ(last[n], static_cast<int>(n));
    }
  });
}

TEST_F(Mpi, FuturesOrderMessagesAndTasks) {
  run([](mpi::library& mpi, int rank, int size) {
    const int other = rank ^ 1;
    if (other >= size) return;
    int made = 0, got = 0, doubled = 0;
    tasks::finish([&] {
      const auto value = tasks::async_future([&] { made = 20 + rank; });
      const auto sent = mpi.isend_await(&made, 1, MPI_INT, other, 4, MPI_COMM_WORLD, value);
      const auto here = mpi.irecv_await(&got, 1, MPI_INT, other, 4, MPI_COMM_WORLD, value, value);
      tasks::async_await([&] { doubled = 2 * got; }, here, sent);
    });
    EXPECT_EQ(doubled, 2 * (20 + other));
    const auto broken = tasks::async_future([]() -> int { throw std::runtime_error("no value"); });
    const auto never = mpi.isend_await(&made, 1, MPI_INT, other, 5, MPI_COMM_WORLD, broken);
    EXPECT_THROW(never.get(), std::runtime_error);
  });
}

TEST_F(Mpi, Collectives) {
  run([](mpi::library& mpi, int rank, int size) {
    mpi.barrier();
    const auto ranks = static_cast<std::size_t>(size);
    for (int root = 0; root < size; ++root) {
      int value = rank == root ? 100 + root : -1;
      mpi.bcast(&value, 1, MPI_INT, root);
      EXPECT_EQ(value, 100 + root);
      long one = rank + 1, sum = 0;
      mpi.reduce(&one, &sum, 1, MPI_LONG, MPI_SUM, root);
      if (rank == root) {
        EXPECT_EQ(sum, size * (size + 1) / 2);
      }
      std::vector<int> all(ranks, -1);
      mpi.gather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, root);
      if (rank == root) {
        for (int n = 0; n < size; ++n) EXPECT_EQ(all[static_cast<std::size_t>(n)], n);
      }
      int mine = -1;
      mpi.scatter(all.data(), 1, MPI_INT, &mine, 1, MPI_INT, root);
      EXPECT_EQ(mine, rank);
    }
    double most = rank, found = 0;
    mpi.allreduce(&most, &found, 1, MPI_DOUBLE, MPI_MAX);
    EXPECT_EQ(found, size - 1);
    std::vector<int> out(ranks), in(ranks);
    for (std::size_t n = 0; n < ranks; ++n) out[n] = rank * 100 + static_cast<int>(n);
    mpi.alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT);
    for (std::size_t n = 0; n < ranks; ++n) EXPECT_EQ(in[n], static_cast<int>(n) * 100 + rank);
    mpi.allgather(&rank, 1, MPI_INT, in.data(), 1, MPI_INT);
    for (std::size_t n = 0; n < ranks; ++n) EXPECT_EQ(in[n], static_cast<int>(n));
  });
}

TEST_F(Mpi, AlltoallvOfUnlikeParts) {
  run([](mpi::library& mpi, int rank, int size) {
    std::vector<int> out, in, out_counts, out_offsets, in_counts, in_offsets;
    int received = 0;
    for (int n = 0; n < size; ++n) {
      out_counts.push_back(rank + n);
      out_offsets.push_back(static_cast<int>(out.size()));
      out.insert(out.end(), static_cast<std::size_t>(rank + n), rank * 10 + n);
      in_counts.push_back(n + rank);
      in_offsets.push_back(received);
      received += n + rank;
    }
    in.resize(static_cast<std::size_t>(received), -1);
    mpi.alltoallv(out.data(), out_counts.data(), out_offsets.data(), MPI_INT, in.data(),
                  in_counts.data(), in_offsets.data(), MPI_INT);
    for (int n = 0; n < size; ++n) {
      for (int k = 0; k < in_counts[static_cast<std::size_t>(n)]; ++k) {
        EXPECT_EQ(in[static_cast<std::size_t>(in_offsets[static_cast<std::size_t>(n)] + k)],
                  n * 10 + rank);
      }
    }
  });
}

// Non-blocking collectives, one begun before the other is over, and work beside them.
TEST_F(Mpi, CollectivesOverlapWithTasks) {
  run([](mpi::library& mpi, int rank, int size) {
    std::vector<long> mine(50'000, rank + 1), sum(50'000);
    long total = 0;
    tasks::finish([&] {
      const auto reduced = mpi.iallreduce(mine.data(), sum.data(), 50'000, MPI_LONG, MPI_SUM);
      const auto met = mpi.ibarrier();
      std::atomic<long> beside{0};
      tasks::forasync(0, 10'000, [&](std::ptrdiff_t) { beside.fetch_add(1); });
      EXPECT_EQ(beside.load(), 10'000);
      tasks::async_await([&] { total = std::accumulate(sum.begin(), sum.end(), 0L); }, reduced,
                         met);
    });
    EXPECT_EQ(total, 50'000L * size * (size + 1) / 2);
  });
}

TEST_F(Mpi, ErrorsAreExceptionsWithMpisText) {
  run([](mpi::library& mpi, int rank, int size) {
    int value = 0;
    const auto nobody = mpi.isend(&value, 1, MPI_INT, size + 5, 6);
    try {
      nobody.get();
      ADD_FAILURE() << "there is no such rank";
    } catch (const mpi::error& failure) {
      EXPECT_NE(std::string(failure.what()).find("isend: MPI_ERR_RANK"), std::string::npos)
          << failure.what();
      int wanted = 0;
      MPI_Error_class(failure.code(), &wanted);
      EXPECT_EQ(wanted, MPI_ERR_RANK);
    }
    // A message that is too long: known only once it is there.
    std::vector<int> many(64, rank), few(1);
    const auto sent = mpi.isend(many.data(), 64, MPI_INT, (rank + 1) % size, 7);
    try {
      mpi.recv(few.data(), 1, MPI_INT, MPI_ANY_SOURCE, 7);
      ADD_FAILURE() << "the message does not fit";
    } catch (const mpi::error& failure) {
      EXPECT_NE(std::string(failure.what()).find("MPI_ERR_TRUNCATE"), std::string::npos)
          << failure.what();
    }
    sent.wait();
    mpi.barrier();
  });
}

TEST_F(Mpi, AnyOtherFunction) {
  run([](mpi::library& mpi, int rank, int size) {
    MPI_Comm half = MPI_COMM_NULL;
    // Collective, and waits for the others: each rank has one task there, so all come.
    mpi.call("MPI_Comm_split", [&] {
         return MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
       }).get();
    EXPECT_EQ(mpi.size(half), (size + 1 - rank % 2) / 2);
    int sum = 0, one = 1;
    mpi.allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
    EXPECT_EQ(sum, mpi.size(half));
    std::vector<int> all(static_cast<std::size_t>(size));
    mpi.start("exscan", [&](MPI_Request* request) {
         return MPI_Iexscan(&one, all.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
       }).get();
    if (rank > 0) {
      EXPECT_EQ(all[0], rank);
    }
    mpi.call("MPI_Comm_free", [&] { return MPI_Comm_free(&half); }).get();
  });
}

TEST_F(Mpi, OutsideOfTasksIsRefused) {
  int value = 0;
  EXPECT_THROW(job->mpi.isend(&value, 1, MPI_INT, 0, 8), std::logic_error);
}

}  // namespace
}  // namespace amasia

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  amasia::Job job(&argc, &argv);
  amasia::job = &job;
  const char* const wanted = std::getenv("RANKS_EXPECTED");
  if (wanted != nullptr && std::atoi(wanted) != job.mpi.size()) return 3;
  return RUN_ALL_TESTS();
}
