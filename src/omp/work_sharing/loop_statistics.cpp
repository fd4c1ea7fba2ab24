// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "omp/region/region_statistics.hpp"

namespace amasia::omp {
namespace {

using base::LoopNodeStatistics;
using base::LoopStatistics;

LoopStatistics::Form form_of(LoopForm form) {
  switch (form) {
    case LoopForm::kBlocks:
      return LoopStatistics::Form::kBlocks;
    case LoopForm::kChunks:
      return LoopStatistics::Form::kChunks;
    case LoopForm::kVectorBlocks:
      return LoopStatistics::Form::kVectors;
    case LoopForm::kPooled:
      return LoopStatistics::Form::kPool;
    case LoopForm::kOrdered:
      return LoopStatistics::Form::kOrdered;
    case LoopForm::kParts:
      return LoopStatistics::Form::kParts;
  }
  AMASIA_CHECK(false, "a loop has one of the forms");
  return LoopStatistics::Form::kPool;
}

// What a node's threads get of chunks that go round all threads, in iterations.
double chunks_of(const NodeShare& node, std::uint32_t all_threads, const LoopRun& run) {
  const std::uint64_t chunk = std::clamp<std::uint64_t>(run.chunk, 1, run.iterations);
  const std::uint64_t chunks = (run.iterations - 1) / chunk + 1;
  const std::uint64_t rest = chunks % all_threads;
  const std::uint64_t more = rest > node.offset ? rest - node.offset : 0;
  const std::uint64_t own =
      chunks / all_threads * node.threads + std::min<std::uint64_t>(more, node.threads);
  const std::uint64_t last = (chunks - 1) % all_threads;
  double size = static_cast<double>(own) * static_cast<double>(chunk);
  if (last >= node.offset && last < node.offset + node.threads) {
    size -= static_cast<double>(chunk - 1 - (run.iterations - 1) % chunk);
  }
  return size;
}

double vectors_of(const NodeShare& node, std::uint32_t all_threads, const LoopRun& run) {
  double size = 0;
  for (std::uint32_t id = 0; id < node.threads; ++id) {
    size += static_cast<double>(
        loops::static_block_of_chunks(run.iterations, run.chunk, node.offset + id, all_threads)
            .size());
  }
  return size;
}

double size_of(const NodeShare& node, std::uint32_t all_threads, const LoopRun& run) {
  if (run.form == LoopForm::kVectorBlocks) return vectors_of(node, all_threads, run);
  const bool whole = run.chunk == 0 && !loops::schedule_of(run.asked).pooled();
  if (run.form == LoopForm::kOrdered && whole) {
    return static_cast<double>(run.iterations) * node.threads / all_threads;
  }
  return chunks_of(node, all_threads, run);
}

// Of a loop whose shares are fixed when the region begins.
void add_fixed_shares(const RegionRecord& record, const LoopRun& run, LoopStatistics& loop) {
  if (record.shares.empty() || run.iterations == 0) return;
  const bool by_speed = run.form == LoopForm::kBlocks;
  const std::vector<loops::Power> powers = powers_of(record.shares);
  const NodeShare& end = record.shares.back();
  std::uint32_t fastest = 1;
  for (const loops::Power& power : powers) fastest = std::max(fastest, power.speed);
  for (std::size_t r = 0; r < powers.size(); ++r) {
    const NodeShare& node = record.shares[r];
    LoopNodeStatistics part;
    part.id = node.node.value;
    const double size =
        by_speed
            ? static_cast<double>(loops::weighted_node_block(run.iterations, powers, r).size())
            : size_of(node, end.offset + end.threads, run);
    part.share = std::clamp(size / static_cast<double>(run.iterations), 0.0, 1.0);
    if (!by_speed) {
      part.csr = 1;
    } else if (node.speed > 0) {
      part.csr = static_cast<double>(node.speed) / fastest;
    }
    loop.per_node.push_back(part);
  }
}

void add_outcome(const LoopRun& met, const LoopOutcome& outcome, LoopStatistics& loop) {
  const LoopRunOutcome& run = outcome.last;
  loop.elapsed_ns = outcome.elapsed_ns;
  loop.predicted_runs = outcome.expected_runs;
  loop.predicted_ns = outcome.expected_ns;
  loop.measured_ns = outcome.measured_ns;
  if (run.count == 0) return;
  std::uint32_t fastest = 1;
  for (const auto& part : run.parts) fastest = std::max(fastest, part.speed);
  // What is handed out may be several iterations each.
  const double together =
      met.iterations > run.count
          ? static_cast<double>(met.iterations) / static_cast<double>(run.count)
          : 1;
  for (const auto& part : run.parts) {
    LoopNodeStatistics node;
    node.id = part.node.value;
    node.share = static_cast<double>(part.given) / static_cast<double>(run.count);
    if (part.speed > 0) node.csr = static_cast<double>(part.speed) / fastest;
    node.probes = part.probes;
    node.compute_ns = part.cost.compute / together;
    node.stall_ns = part.cost.stall / together;
    loop.per_node.push_back(node);
  }
}

}  // namespace

LoopStatistics statistics_of(const RegionRecord& record, const LoopBook::Entry& met,
                             const LoopOutcome* outcome) {
  LoopStatistics loop;
  loop.kind = loops::schedule_of(met.last.asked).name;
  loop.schedule = loops::schedule_of(met.last.carried_out).name;
  loop.form = form_of(met.last.form);
  loop.chunk = met.last.chunk;
  loop.runs = met.runs;
  loop.iterations = met.iterations;
  if (met.last.form != LoopForm::kPooled && met.last.form != LoopForm::kParts) {
    add_fixed_shares(record, met.last, loop);
  } else if (outcome != nullptr) {
    add_outcome(met.last, *outcome, loop);
  }
  return loop;
}

}  // namespace amasia::omp
