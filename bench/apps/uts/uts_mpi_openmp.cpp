// SPDX-License-Identifier: Apache-2.0
// The peer of uts_nodes: a tree search as MPI and OpenMP programs have it (and the OpenSHMEM+OpenMP
// version of the HiPER paper, section III-C): each rank has a stack that its threads share, one
// thread of it makes all calls of MPI between nodes (MPI_THREAD_FUNNELED), a rank without work asks
// others, and a token that goes round finds the end (Safra; EWD 998).
//
// Chunk and interval were chosen by measurement on two cores: chunks of 2 to 8 nodes are a fifth
// quicker than such of 20 (T1), and a look for messages each 64 to 256 nodes makes no difference.
//
// mpirun -np N uts_mpi_openmp [--tree T1|T3|T5] [--rounds R] [--threads T] [--chunk C] [--every E]
// [--quick]: times of a search on all ranks, from one barrier to the sum. Every count is compared
// with the published one; a wrong one ends with 1. --quick: all trees once, without times.
#include <mpi.h>
#include <omp.h>

#include <cstdio>
#include <vector>

#include "../../tasks/harness.hpp"
#include "setting.hpp"
#include "shared_stack.hpp"

namespace {

using uts::expect;
using uts::Setting;

enum Tag { kRequest = 1, kNodes, kToken, kEnd };

// What a rank's first thread does with other ranks.
class Others {
 public:
  Others(uts::SharedStack& stack, std::size_t chunk) : stack_(stack), chunk_(chunk) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    has_token_ = rank_ == 0;
    victim_ = rank_;
  }

  // Answers all that has come.
  void serve() {
    if (ranks_ == 1) return;
    for (;;) {
      int come = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &come, &status);
      if (come == 0) return;
      take(status);
    }
  }
  // The rank has nothing to do: asks for work, or passes the token on. True: the tree is done.
  bool seek() {
    if (ranks_ == 1 || is_over_) return true;
    if (!asking_) {
      victim_ = (victim_ + 1) % ranks_;
      if (victim_ == rank_) victim_ = (victim_ + 1) % ranks_;
      MPI_Send(nullptr, 0, MPI_BYTE, victim_, kRequest, MPI_COMM_WORLD);
      asking_ = true;
    }
    if (has_token_) pass_token();
    return is_over_;
  }
  // Until nobody waits for an answer of this rank any more.
  void leave() {
    if (ranks_ == 1) return;
    while (asking_) serve();
    MPI_Request met;
    MPI_Ibarrier(MPI_COMM_WORLD, &met);
    for (int over = 0; over == 0; MPI_Test(&met, &over, MPI_STATUS_IGNORE)) serve();
  }

 private:
  struct Token {
    long balance;  // messages with nodes that were sent and not received, of those passed
    int black;
  };

  void take(const MPI_Status& status) {
    const int from = status.MPI_SOURCE;
    switch (status.MPI_TAG) {
      case kRequest: {
        MPI_Recv(nullptr, 0, MPI_BYTE, from, kRequest, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const uts::Nodes some = stack_.take_half();
        if (!some.empty()) ++balance_;
        MPI_Send(some.data(), bytes_of(some.size()), MPI_BYTE, from, kNodes, MPI_COMM_WORLD);
        return;
      }
      case kNodes: {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        uts::Nodes some(static_cast<std::size_t>(bytes) / sizeof(uts::Node));
        MPI_Recv(some.data(), bytes, MPI_BYTE, from, kNodes, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        asking_ = false;
        if (some.empty()) return;
        --balance_;
        is_black_ = true;
        while (some.size() > chunk_) stack_.give(some, chunk_);
        return stack_.put(std::move(some));
      }
      case kToken:
        MPI_Recv(&token_, sizeof token_, MPI_BYTE, from, kToken, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        has_token_ = true;
        return;
      default:
        MPI_Recv(nullptr, 0, MPI_BYTE, from, kEnd, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        is_over_ = true;
    }
  }
  static int bytes_of(std::size_t nodes) { return static_cast<int>(nodes * sizeof(uts::Node)); }

  // Rank 0 begins each round, and judges the one before.
  void pass_token() {
    if (rank_ == 0) {
      if (began_ && token_.black == 0 && !is_black_ && token_.balance + balance_ == 0) {
        is_over_ = true;
        for (int to = 1; to < ranks_; ++to) {
          MPI_Send(nullptr, 0, MPI_BYTE, to, kEnd, MPI_COMM_WORLD);
        }
        return;
      }
      began_ = true;
      token_ = {0, 0};
    } else {
      token_.balance += balance_;
      if (is_black_) token_.black = 1;
    }
    MPI_Send(&token_, sizeof token_, MPI_BYTE, (rank_ + 1) % ranks_, kToken, MPI_COMM_WORLD);
    has_token_ = false;
    is_black_ = false;
  }

  uts::SharedStack& stack_;
  const std::size_t chunk_;
  int rank_ = 0, ranks_ = 1, victim_ = 0;
  bool asking_ = false, is_over_ = false;
  Token token_{0, 0};
  bool has_token_ = false, began_ = false, is_black_ = false;
  long balance_ = 0;
};

// By one thread of a rank, until the whole tree is done; how many nodes it has visited.
long visit(uts::SharedStack& stack, Others* others, const Setting& setting) {
  uts::Nodes own;
  own.reserve(1024);
  long nodes = 0;
  int until_look = setting.every;
  bool idle = false;
  uts::Patience patience;
  for (;;) {
    while (own.empty() && !stack.take(own, idle)) {
      if (stack.is_over()) return nodes;
      if (others != nullptr) {
        others->serve();
        if (stack.is_at_rest() && others->seek()) stack.end();
      }
      patience.pause();
    }
    const uts::Node node = own.back();
    own.pop_back();
    ++nodes;
    const int children = uts::children_of(node, setting.shape());
    for (int n = 0; n < children; ++n) own.push_back(uts::child_of(node, n));
    if (own.size() >= 2 * setting.chunk && stack.wants()) stack.give(own, setting.chunk);
    if (others != nullptr && --until_look == 0) {
      until_look = setting.every;
      others->serve();
    }
  }
}

long search(const Setting& setting, int rank, int ranks) {
  const auto threads = static_cast<std::size_t>(setting.threads);
  uts::SharedStack stack(setting.threads, 2 * threads + (ranks > 1 ? 4 : 0));
  if (rank == 0) stack.put({uts::root_of(setting.shape())});
  Others others(stack, setting.chunk);
  long nodes = 0;
#pragma omp parallel num_threads(setting.threads) reduction(+ : nodes)
  nodes = visit(stack, omp_get_thread_num() == 0 ? &others : nullptr, setting);
  others.leave();
  long all = 0;
  MPI_Allreduce(&nodes, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Setting setting = uts::setting_of(argc, argv);
  if (setting.quick) {
    for (setting.tree = 0; setting.tree < std::size(uts::kTrees); ++setting.tree) {
      for (setting.threads = 1; setting.threads <= 2; ++setting.threads) {
        expect(search(setting, rank, ranks), setting.shape());
      }
    }
    if (rank == 0) std::printf("the trees have as many nodes as published\n");
  } else {
    std::vector<double> times;
    for (int round = 0; round <= setting.rounds; ++round) {  // the first is not counted
      MPI_Barrier(MPI_COMM_WORLD);
      const double took =
          bench::seconds_of([&] { expect(search(setting, rank, ranks), setting.shape()); });
      if (round > 0) times.push_back(took);
    }
    if (rank == 0) {
      std::printf("%s, %d ranks of %d threads: median %.4f s\n", setting.shape().name, ranks,
                  setting.threads, bench::median(times));
    }
  }
  MPI_Finalize();
  return 0;
}
