// SPDX-License-Identifier: Apache-2.0
// Memory of all nodes on one: what a child of fork() is given.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "omp/launch/fork_copy.hpp"
#include "omp/launch/node_process.hpp"

namespace amasia::omp {
namespace {

// Asked for at once, while the run before it is waited for. The engine drops longer wishes.
constexpr PageCount kAtOnce = 4 * base::kMiB / base::kPageSize;

}  // namespace

void NodeProcess::tell_touched_runs(NodeId to) {
  const std::vector<dsm::PageRun> runs = touched_runs(process_.space);
  fabric_->send(to, kTouchedRuns, {}, std::as_bytes(std::span(runs)));
}

// True: the answer is well-formed. On the polling thread.
bool NodeProcess::note_touched_runs(NodeId from, std::span<const std::byte> body) {
  if (body.size() % sizeof(dsm::PageRun) != 0) return false;
  std::vector<dsm::PageRun>& runs = touched_[from.value];
  runs.resize(body.size() / sizeof(dsm::PageRun));
  std::memcpy(runs.data(), body.data(), body.size());
  const bool valid = std::ranges::all_of(
      runs, [this](const dsm::PageRun& run) { return process_.space.is_valid(run); });
  if (!valid) return false;
  touched_told_.fetch_add(1, std::memory_order_release);  // partner: fetch_memory
  node_->wake();
  return true;
}

void NodeProcess::fetch_memory() {
  const std::uint32_t others = fabric_->node_count() - 1;
  touched_told_.store(0, std::memory_order_relaxed);  // no answer is under way
  for (std::uint16_t node = 1; node <= others; ++node) {
    fabric_->send(NodeId{node}, kTouchedRunsWanted, {});
  }
  node_->wait_until([&] { return touched_told_.load(std::memory_order_acquire) == others; },
                    node_->settings().spin_in_region, "what memory other nodes have, for fork");
  for (std::uint16_t node = 1; node <= others; ++node) fetch(touched_[node]);
}

// Reading brings a page here. The next run is asked for before this one is waited for.
void NodeProcess::fetch(std::span<const dsm::PageRun> runs) {
  const dsm::AddressSpace& space = process_.space;
  const auto ask = [&](const dsm::PageRun& part) {
    engine_->prefetch(space.address_of(part.first), part.count * base::kPageSize,
                      dsm::AccessKind::kRead);
  };
  const auto read = [&](const dsm::PageRun& part) {
    const std::byte* const begin = space.address_of(part.first);
    for (PageCount page = 0; page < part.count; ++page) {
      static_cast<void>(*static_cast<const volatile std::byte*>(begin + page * base::kPageSize));
    }
  };
  dsm::PageRun asked{};
  for (dsm::PageRun rest : runs) {
    while (rest.count > 0) {
      const dsm::PageRun part{rest.first, std::min(rest.count, kAtOnce)};
      ask(part);
      read(asked);
      asked = part;
      rest = {PageIndex{rest.first.value + part.count}, rest.count - part.count};
    }
  }
  read(asked);
}

}  // namespace amasia::omp
