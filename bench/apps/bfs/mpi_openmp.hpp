// SPDX-License-Identifier: Apache-2.0
// The search with MPI and OpenMP: level by level, threads expand a rank's vertices, one
// MPI_Alltoallv takes what was found to its owners, and threads take it in.
#pragma once

#include <mpi.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <vector>

#include "graph.hpp"

namespace bfs {

class ByMpiAndOpenmp {
 public:
  // `graph`: the neighbours of this rank's vertices, `share` of them, which outlives the search.
  // MPI is called by the calling thread only.
  ByMpiAndOpenmp(const Neighbours& graph, Vertex share, int rank, int ranks, int threads)
      : all_parents(static_cast<std::size_t>(share * ranks)),
        graph_(graph),
        share_(share),
        rank_(rank),
        ranks_(static_cast<std::size_t>(ranks)),
        threads_(threads),
        parents_(static_cast<std::size_t>(share)),
        told_(static_cast<std::size_t>(share * ranks)) {}

  // Collective; all_parents is then that of all ranks.
  void run(Vertex root) {
    std::fill(parents_.begin(), parents_.end(), kNone);
    std::fill(told_.begin(), told_.end(), 0);
    frontier_.clear();
    if (root / share_ == rank_) {
      parents_[static_cast<std::size_t>(root % share_)] = root;
      frontier_.push_back(root);
    }
    for (long more = 1; more != 0;) {
      expand();
      exchange();
      take_in();
      const long mine = static_cast<long>(frontier_.size());
      MPI_Allreduce(&mine, &more, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    const int share = static_cast<int>(share_);
    MPI_Allgather(parents_.data(), share, MPI_INT64_T, all_parents.data(), share, MPI_INT64_T,
                  MPI_COMM_WORLD);
  }

  std::vector<Vertex> all_parents;

 private:
  struct Found {
    Vertex vertex, parent;
  };
  using Outboxes = std::vector<std::vector<Found>>;  // by rank

  // Each vertex is told of to its owner once. What threads have found is put behind one another.
  void expand() {
    std::vector<Outboxes> found(static_cast<std::size_t>(threads_));
    std::vector<std::vector<std::size_t>> begins(found.size());
    out_counts_.assign(ranks_, 0);
    out_offsets_.assign(ranks_, 0);
#pragma omp parallel num_threads(threads_)
    {
      const auto self = static_cast<std::size_t>(omp_get_thread_num());
      Outboxes& mine = found[self];
      mine.resize(ranks_);
#pragma omp for schedule(dynamic, 512)
      for (std::size_t n = 0; n < frontier_.size(); ++n) visit(frontier_[n], mine);
#pragma omp single
      lay_out(found, begins);
      for (std::size_t to = 0; to < ranks_; ++to) {
        std::copy(mine[to].begin(), mine[to].end(),
                  out_.begin() + static_cast<std::ptrdiff_t>(begins[self][to]));
      }
    }
  }
  void visit(Vertex from, Outboxes& out) {
    graph_.visit(from, [&](Vertex to) {
      std::atomic_ref<char> told(told_[static_cast<std::size_t>(to)]);
      if (told.load(std::memory_order_relaxed) != 0 || told.exchange(1) != 0) return;
      out[static_cast<std::size_t>(to / share_)].push_back({to, from});
    });
  }
  // Counts and offsets in bytes, as MPI wants them.
  void lay_out(const std::vector<Outboxes>& found, std::vector<std::vector<std::size_t>>& begins) {
    std::size_t next = 0;
    for (auto& of_thread : begins) of_thread.resize(ranks_);
    for (std::size_t to = 0; to < ranks_; ++to) {
      out_offsets_[to] = static_cast<int>(next * sizeof(Found));
      for (std::size_t thread = 0; thread < found.size(); ++thread) {
        begins[thread][to] = next;
        next += found[thread][to].size();
      }
      out_counts_[to] = static_cast<int>(next * sizeof(Found)) - out_offsets_[to];
    }
    out_.resize(next);
  }
  void exchange() {
    std::vector<int> counts(ranks_), offsets(ranks_);
    MPI_Alltoall(out_counts_.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
    in_.resize(static_cast<std::size_t>(offsets.back() + counts.back()) / sizeof(Found));
    MPI_Alltoallv(out_.data(), out_counts_.data(), out_offsets_.data(), MPI_BYTE, in_.data(),
                  counts.data(), offsets.data(), MPI_BYTE, MPI_COMM_WORLD);
  }
  void take_in() {
    frontier_.clear();
#pragma omp parallel num_threads(threads_)
    {
      std::vector<Vertex> reached;
#pragma omp for schedule(static) nowait
      for (std::size_t n = 0; n < in_.size(); ++n) {
        std::atomic_ref<Vertex> parent(parents_[static_cast<std::size_t>(in_[n].vertex % share_)]);
        Vertex none = kNone;
        if (parent.compare_exchange_strong(none, in_[n].parent)) reached.push_back(in_[n].vertex);
      }
#pragma omp critical
      frontier_.insert(frontier_.end(), reached.begin(), reached.end());
    }
  }

  const Neighbours& graph_;
  const Vertex share_;
  const int rank_;
  const std::size_t ranks_;
  const int threads_;
  std::vector<Vertex> parents_, frontier_;
  std::vector<char> told_;  // of all vertices: its owner has been told
  std::vector<Found> out_, in_;
  std::vector<int> out_counts_, out_offsets_;
};

}  // namespace bfs
