// SPDX-License-Identifier: Apache-2.0
// Breadth-first search in the manner of Graph500, between PEs of OpenSHMEM.
//
//   tasks    each level, PEs put what they found of others' vertices into these PEs' inboxes, and a
//            word after it; a task that waits for that word (async_when) takes the inbox in, while
//            other inboxes are still on their way, and the PE takes in what it found of its own.
//            Nobody polls.
//   openmp   MPI+OpenMP, level by level (mpi_openmp.hpp)
//   plain    the same with OpenSHMEM and one thread: all puts, a barrier, all inboxes
//
// Verified by PE 0 for each search: the rules of Graph500 (graph.hpp), and as many vertices reached
// at each distance as a search by one thread.
// Run: oshrun -np N graph_bfs [--quick] [--scale S] [--threads W] [--rounds R]
#include <shmem.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "../../tasks/harness.hpp"
#include "amasia/openshmem.hpp"
#include "graph.hpp"
#include "mpi_openmp.hpp"

namespace openshmem = amasia::openshmem;
namespace tasks = amasia::tasks;
using bfs::kNone;
using bfs::Vertex;

namespace {

struct Found {
  Vertex vertex, parent;
};

// A PE's share of the graph, and the symmetric memory of the search.
class Search {
 public:
  Search(openshmem::library& shmem, int scale)
      : shmem_(shmem),
        me_(shmem.pe()),
        pes_(shmem.pes()),
        share_(((Vertex{1} << scale) + pes_ - 1) / pes_),
        graph_(scale, std::uint64_t{16} << scale, share_ * me_, share_),
        parents(shmem.allocate_array<Vertex>(static_cast<std::size_t>(share_))),
        all_parents(shmem.allocate_array<Vertex>(static_cast<std::size_t>(share_ * pes_))),
        inboxes_(shmem.allocate_array<Found>(static_cast<std::size_t>(share_ * pes_))),
        arrived_(shmem.allocate_array<long>(static_cast<std::size_t>(pes_))),
        counts_(shmem.allocate_array<long>(2)),
        told_(static_cast<std::size_t>(share_ * pes_)) {}

  // All of them wait for each other in `collectives`, which is what the two ways differ in.
  void with_tasks(Vertex root) {
    begin(root);
    shmem_.barrier().get();
    for (bool more = true; more;) {
      ++level_;
      std::vector<std::vector<Vertex>> reached(static_cast<std::size_t>(pes_));
      std::vector<Outboxes> blocks;
      tasks::finish([&] {
        for (int n = 1; n < pes_; ++n) {
          const int from = (me_ + n) % pes_;
          shmem_.async_when(&arrived_[from], openshmem::compare::greater_or_equal,
                            level_ * kLevel, [&, from] { take_inbox(from, reached); });
        }
        blocks = expand_with_tasks();
        // Others' first: they wait for it. What it found of its own it takes as it lies.
        for (int n = 1; n < pes_; ++n) send(blocks, (me_ + n) % pes_);
        const auto me = static_cast<std::size_t>(me_);
        for (const Outboxes& block : blocks) {
          take_in(block[me].data(), block[me].size(), reached[me]);
        }
      });
      gather(reached);
      shmem_.reduce(openshmem::reduction::sum, counts_ + 1, counts_, 1).get();
      more = counts_[1] != 0;
    }
    shmem_.collect(all_parents, parents, static_cast<std::size_t>(share_) * sizeof(Vertex)).get();
  }

  void plain(Vertex root) {
    begin(root);
    shmem_barrier_all();
    for (bool more = true; more;) {
      ++level_;
      std::vector<std::vector<Vertex>> reached(static_cast<std::size_t>(pes_));
      std::vector<std::vector<Found>> out(static_cast<std::size_t>(pes_));
      expand(0, frontier_.size(), out);
      for (int to = 0; to < pes_; ++to) {
        const std::vector<Found>& found = out[static_cast<std::size_t>(to)];
        shmem_putmem(inbox(me_), found.data(), found.size() * sizeof(Found), to);
        shmem_fence();
        shmem_long_p(&arrived_[me_], level_ * kLevel + static_cast<long>(found.size()), to);
      }
      shmem_barrier_all();
      for (int from = 0; from < pes_; ++from) take_inbox(from, reached);
      gather(reached);
      shmem_barrier_all();
      more = sum_of_counts() != 0;
    }
    shmem_barrier_all();
    for (int to = 0; to < pes_; ++to) {
      shmem_putmem(all_parents + share_ * me_, parents,
                   static_cast<std::size_t>(share_) * sizeof(Vertex), to);
    }
    shmem_barrier_all();
  }

  std::vector<Vertex> result(Vertex vertices) const {
    return {all_parents, all_parents + vertices};
  }
  // Of the same graph; this outlives it.
  bfs::ByMpiAndOpenmp with_openmp(unsigned threads) const {
    return {graph_, share_, me_, pes_, static_cast<int>(threads)};
  }

 private:
  static constexpr long kLevel = 1L << 40;  // in a word of arrived_: level, and how many

  Found* inbox(int from) const { return inboxes_ + share_ * from; }

  void begin(Vertex root) {
    std::fill_n(parents, share_, kNone);
    std::fill(told_.begin(), told_.end(), 0);
    frontier_.clear();
    if (root / share_ == me_) {
      parents[root % share_] = root;
      frontier_.push_back(root);
    }
  }
  // Each vertex is told of to its owner once: an inbox never overflows.
  void expand(std::size_t low, std::size_t high, std::vector<std::vector<Found>>& out) {
    for (std::size_t n = low; n < high; ++n) {
      graph_.visit(frontier_[n], [&](Vertex to) {
        std::atomic_ref<char> told(told_[static_cast<std::size_t>(to)]);
        if (told.load(std::memory_order_relaxed) != 0 || told.exchange(1) != 0) return;
        out[static_cast<std::size_t>(to / share_)].push_back({to, frontier_[n]});
      });
    }
  }
  using Outboxes = std::vector<std::vector<Found>>;  // by PE
  // By block of the frontier.
  std::vector<Outboxes> expand_with_tasks() {
    constexpr std::size_t kBlock = 512;
    std::vector<Outboxes> blocks((frontier_.size() + kBlock - 1) / kBlock);
    tasks::forasync(tasks::range<1>{{0}, {static_cast<std::ptrdiff_t>(blocks.size())}, {1}},
                    [&](std::ptrdiff_t n) {
                      const auto block = static_cast<std::size_t>(n);
                      blocks[block].resize(static_cast<std::size_t>(pes_));
                      expand(block * kBlock, std::min(frontier_.size(), (block + 1) * kBlock),
                             blocks[block]);
                    });
    return blocks;
  }
  void send(const std::vector<Outboxes>& blocks, int to) {
    long count = 0;
    for (const Outboxes& block : blocks) {
      const std::vector<Found>& found = block[static_cast<std::size_t>(to)];
      if (found.empty()) continue;
      shmem_.put(inbox(me_) + count, found.data(), found.size() * sizeof(Found), to).get();
      count += static_cast<long>(found.size());
    }
    shmem_.fence();
    shmem_.set(&arrived_[me_], level_ * kLevel + count, to);
  }
  // `reached` by PE, of whose inbox it is.
  void take_inbox(int from, std::vector<std::vector<Vertex>>& reached) {
    take_in(inbox(from), static_cast<std::size_t>(arrived_[from] % kLevel),
            reached[static_cast<std::size_t>(from)]);
  }
  void take_in(const Found* found, std::size_t count, std::vector<Vertex>& reached) {
    for (std::size_t n = 0; n < count; ++n) {
      std::atomic_ref<Vertex> parent(parents[found[n].vertex % share_]);
      Vertex none = kNone;
      if (parent.compare_exchange_strong(none, found[n].parent)) {
        reached.push_back(found[n].vertex);
      }
    }
  }
  void gather(const std::vector<std::vector<Vertex>>& reached) {
    frontier_.clear();
    for (const auto& some : reached) {
      frontier_.insert(frontier_.end(), some.begin(), some.end());
    }
    counts_[0] = static_cast<long>(frontier_.size());
  }
  long sum_of_counts() const {
    long sum = 0;
    for (int pe = 0; pe < pes_; ++pe) sum += shmem_long_g(&counts_[0], pe);
    shmem_barrier_all();
    return sum;
  }

  openshmem::library& shmem_;
  const int me_, pes_;
  const Vertex share_;
  const bfs::Neighbours graph_;

 public:
  Vertex* const parents;
  Vertex* const all_parents;

 private:
  Found* const inboxes_;  // one for each PE
  long* const arrived_;   // by PE: what it last put; grows over all searches
  long* const counts_;    // mine, and of all
  long level_ = 0;
  std::vector<Vertex> frontier_;
  std::vector<char> told_;
};

bool is_right(const std::vector<Vertex>& parents, const bfs::Neighbours& whole, Vertex root) {
  const std::string wrong = bfs::wrong_in(parents, whole, root);
  if (!wrong.empty()) {
    std::printf("root %ld: %s\n", static_cast<long>(root), wrong.c_str());
    return false;
  }
  const auto expected =
      bfs::depths(bfs::search(whole, static_cast<Vertex>(parents.size()), root), root);
  return bfs::depths(parents, root) == expected;
}

}  // namespace

int main(int argc, char** argv) {
  int scale = 16, rounds = 5;
  unsigned threads = 2;
  for (int n = 1; n < argc; ++n) {
    const auto next = [&] { return n + 1 < argc ? std::atoi(argv[++n]) : 0; };
    if (std::strcmp(argv[n], "--quick") == 0) scale = 10, rounds = 2;
    if (std::strcmp(argv[n], "--scale") == 0) scale = next();
    if (std::strcmp(argv[n], "--threads") == 0) threads = static_cast<unsigned>(next());
    if (std::strcmp(argv[n], "--rounds") == 0) rounds = next();
  }
  tasks::runtime workers({.workers = threads});
  openshmem::library shmem(workers);
  if (shmem.pe() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 2;
  const Vertex vertices = Vertex{1} << scale;
  Search search(shmem, scale);
  bfs::ByMpiAndOpenmp by_openmp = search.with_openmp(threads);  // OpenSHMEM has begun MPI, too
  std::unique_ptr<bfs::Neighbours> whole;
  if (shmem.pe() == 0) {
    whole = std::make_unique<bfs::Neighbours>(scale, std::uint64_t{16} << scale, 0, vertices);
  }
  // The same roots on all PEs: vertices that have edges, for PE 0 looks.
  long* const root = shmem.allocate_array<long>(1);
  int wrong = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (shmem.pe() == 0) {
      auto candidate = static_cast<Vertex>(bfs::mixed(static_cast<std::uint64_t>(turn)) %
                                           static_cast<std::uint64_t>(vertices));
      while (whole->degree(candidate) == 0) candidate = (candidate + 1) % vertices;
      for (int pe = 0; pe < shmem.pes(); ++pe) shmem_long_p(root, candidate, pe);
    }
    shmem_barrier_all();
    const auto check = [&](std::vector<Vertex> parents) {
      parents.resize(static_cast<std::size_t>(vertices));
      if (shmem.pe() == 0) wrong += !is_right(parents, *whole, *root);
      shmem_barrier_all();
    };
    workers.run([&] { search.with_tasks(*root); });
    check(search.result(vertices));
    search.plain(*root);
    check(search.result(vertices));
    by_openmp.run(*root);
    check(by_openmp.all_parents);
    bench::compare("bfs", threads, static_cast<double>(16 * vertices), "edge",
                   {{"amasia", [&] { workers.run([&] { search.with_tasks(*root); }); }},
                    {"openmp", [&] { by_openmp.run(*root); }},
                    {"plain", [&] { search.plain(*root); }}},
                   rounds);
  }
  std::printf("%s\n", wrong == 0 ? "verified" : "WRONG");
  return wrong == 0 ? 0 : 1;
}
