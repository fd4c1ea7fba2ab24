// SPDX-License-Identifier: Apache-2.0
// What `--stats` reports, as plain values: every node fills one NodeStatistics, the origin one
// RegionStatistics a region; workers send theirs to the origin, which prints them all.
//
// NodeStatistics is trivially copyable and holds no pointers, so it travels in a message as bytes
// between nodes (the same image, hence the same layout).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/units.hpp"

namespace amasia::base {

// Counters of one node since its start. Field names are those of the JSON document.
struct NodeStatistics {
  std::uint32_t id = 0;
  std::uint32_t pid = 0;
  std::uint64_t faults_read = 0;     // a page was not here and was read
  std::uint64_t faults_write = 0;    // a page was not here and was written
  std::uint64_t faults_upgrade = 0;  // a read copy was here and was written
  std::uint64_t pages_in = 0;        // pages whose contents came to this node
  std::uint64_t pages_out = 0;
  std::uint64_t bytes_in = 0;  // of all messages, frames included
  std::uint64_t bytes_out = 0;
  std::uint64_t messages = 0;       // sent by this node
  Nanos stall_ns = 0;               // sum over threads of the time spent waiting for managed pages
  std::uint64_t pages_offered = 0;  // sent, of its own, to nodes that will want them, unasked
  std::uint64_t pages_evicted = 0;  // copies given up to stay within --memory
  std::uint64_t memory_max = 0;     // the most bytes of managed memory seen at once
};

static_assert(std::is_trivially_copyable_v<NodeStatistics>);

// What one node did in the latest shared run of a region, and what is thought of it. Only nodes
// that have ever had a part in one are listed.
struct RegionNodeStatistics {
  std::uint32_t id = 0;
  std::uint32_t threads = 0;  // 0: it had no part in that run
  double work = 0;            // its part of the whole
  Nanos busy_ns = 0;          // mean over its threads: waiting neither for pages nor for others
  Nanos stall_ns = 0;         // mean over its threads: waiting for pages
  bool dropped = false;       // it gets no part for now: it saves less than it costs
  // Of 1000 instructions, in all runs that were counted; none: none was.
  std::optional<double> misses_per_kilo;
};

// How often a region ran in one way, and how long that took. A run is settled if the one before it
// was of the same way, so that data were where they are used.
struct RegionOutcome {
  std::uint64_t runs = 0;
  Nanos elapsed_ns = 0;
  std::uint64_t settled_runs = 0;
  Nanos settled_ns = 0;

  void add(Nanos elapsed, bool settled) {
    ++runs;
    elapsed_ns += elapsed;
    if (!settled) return;
    ++settled_runs;
    settled_ns += elapsed;
  }
  // Of the settled runs, or of all where none is; 0 where there is none.
  Nanos mean_ns() const {
    if (settled_runs > 0) return settled_ns / static_cast<Nanos>(settled_runs);
    return runs > 0 ? elapsed_ns / static_cast<Nanos>(runs) : 0;
  }
};

// What one node had of a loop in its latest run.
struct LoopNodeStatistics {
  std::uint32_t id = 0;
  double share = 0;           // of the iterations, as dealt
  std::optional<double> csr;  // core speed ratio as dealt by, the fastest = 1; none: it had no part
  // A thread's time for an iteration, waiting for pages apart; of runs that told, newer ones count
  // more. Only where iterations are handed out at run time.
  std::uint32_t probes = 0;  // runs that told; 0: nothing is known
  double compute_ns = 0;
  double stall_ns = 0;
};

// A work-sharing loop of a region, as executions across nodes have met it.
struct LoopStatistics {
  // How iterations come to threads; names are those of the JSON document.
  enum class Form : std::uint8_t {
    kBlocks,   // "blocks": a run for each thread, by the nodes' speeds
    kChunks,   // "chunks": in turn, as schedule(static, chunk) says
    kVectors,  // "vectors": a run of whole vectors for each thread
    kPool,     // "pool": handed out at run time
    kOrdered,  // "ordered": in the order of the iterations
    kParts,    // "parts": as blocks, in parts that others may take over
  };

  std::string site;
  std::string kind;      // as the program asks: "dynamic"
  std::string schedule;  // as it was carried out: "hetprobe-i"
  Form form = Form::kBlocks;
  std::uint64_t chunk = 0;  // 0: none was given
  std::uint64_t runs = 0;
  std::uint64_t iterations = 0;  // of all runs
  std::vector<LoopNodeStatistics> per_node;
  // Where iterations are handed out at run time, on node 0, from its first thread in to its last
  // one out: of all runs, and of those for which a time was predicted.
  Nanos elapsed_ns = 0;
  std::uint64_t predicted_runs = 0;
  Nanos predicted_ns = 0;
  Nanos measured_ns = 0;
};

// One region, by its site.
struct RegionStatistics {
  // What is decided for its next run; names are those of the JSON document.
  enum class Phase : std::uint8_t {
    kNone,    // "": nothing was ever to decide
    kCold,    // "cold": to be shared for the first time, or again after runs alone
    kWarm,    // "warm": shared once
    kTrial,   // "trial": alone, to see what that takes
    kShared,  // "shared"
    kAlone,   // "alone"
    kElsewhere,  // "elsewhere": on one node other than node 0
  };

  // How that is decided; names are those of the JSON document.
  enum class Rule : std::uint8_t {
    kPrediction,  // "prediction": by what is cheaper, as far as is known
    kAlways,      // "always": shared whatever it costs
    kThreshold,   // "threshold": by the time between page faults, --share=threshold
  };

  std::string site;                // "file:line function" or "symbol+0x12"
  std::string single_node_reason;  // why (the last time) only one node took part, or ""
  std::uint64_t runs = 0;
  std::uint64_t single_node_runs = 0;  // runs that stayed on the origin for that reason
  std::uint32_t nodes = 0;             // that took part in the last run
  std::uint64_t faults = 0;            // of all three kinds
  Nanos stall_ns = 0;
  Nanos elapsed_ns = 0;  // on the origin, from fork to join

  Phase phase = Phase::kNone;
  Rule rule = Rule::kPrediction;
  std::vector<RegionNodeStatistics> per_node;  // by id
  // Core speed ratio: how fast a core of each node of the job is, the fastest = 1; by node.
  std::vector<std::optional<double>> csr;
  // For one run; 0 where nothing is known.
  Nanos predicted_alone_ns = 0;   // on the origin only
  Nanos predicted_shared_ns = 0;  // as it was shared last, stall elsewhere included
  Nanos stall_ns_expected = 0;    // of the node that waits longest
  Nanos charged_ns = 0;           // stall after the region that sharing it causes
  Nanos fork_join_ns = 0;         // what a shared run takes beyond its longest node
  bool tried_alone = false;       // predicted_alone_ns was measured
  RegionOutcome shared, alone;    // alone: because that was thought to be cheaper
  RegionOutcome elsewhere;        // on one other node: the same
  std::optional<std::uint32_t> elsewhere_node;  // which, the last time
  bool profiled = false;          // it began as an earlier run had found, --profile
  Nanos until_retried_ns = 0;     // alone, until it has taken so long there: then shared again
  bool gathered = false;          // elsewhere or shared with other regions, as decided for all
  // Of `shared`: its threads were brought to the origin on the way; and what the last such run had
  // lost.
  std::uint64_t runs_come_home = 0;
  Nanos lost_before_home_ns = 0;
  // Last-level cache misses of 1000 instructions, of all nodes that counted; none: none did.
  std::optional<double> misses_per_kilo;
  // The part of the work that is in the first half of its iterations, where these are unlike.
  std::optional<double> work_of_first_half;

  std::vector<LoopStatistics> loops;  // in the order in which they were met
  std::uint64_t loops_left_out = 0;   // runs of further loops

  // Runs for which what executions had told decided where.
  std::uint64_t decided_runs() const { return shared.runs + alone.runs + elsewhere.runs; }
};

const char* name_of(RegionStatistics::Phase phase);
const char* name_of(RegionStatistics::Rule rule);
std::optional<RegionStatistics::Phase> phase_named(std::string_view name);
std::optional<RegionStatistics::Rule> rule_named(std::string_view name);
const char* name_of(LoopStatistics::Form form);
std::optional<LoopStatistics::Form> form_named(std::string_view name);

struct JobStatistics {
  std::vector<NodeStatistics> nodes;
  std::vector<RegionStatistics> regions;
};

// Regions by elapsed time, longest first.
void sort_by_time(std::vector<RegionStatistics>& regions);

// The JSON document of `--stats=FILE`, see docs/statistics.md. Allocates; any thread.
std::string to_json(const JobStatistics& job);

// The same for people: two tables with a heading each, regions by elapsed time, each with a
// sentence that says where it ran and why.
std::string to_table(const JobStatistics& job);

}  // namespace amasia::base
