// SPDX-License-Identifier: Apache-2.0
// What is asked for, decided and known about regions.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "loops/loops.hpp"
#include "omp/region/gathering.hpp"
#include "omp/code/reached_code.hpp"
#include "omp/code/region_code.hpp"
#include "omp/work_sharing/loop_book.hpp"

namespace amasia::omp {

// Which ABI, and so which next runtime, carries a region inside the nodes.
enum class Abi : std::uint8_t { kKmpc, kGomp };
inline constexpr std::size_t kAbis = 2;

// Why a region was not carried across nodes. The texts are in region.cpp, in this order.
enum class SingleReason : std::uint8_t {
  kNone,            // it was
  kOneThread,       // num_threads(1), if(0), OMP_NUM_THREADS=1
  kFitsOneNode,     // packed on the origin, its threads need no further node
  kNested,          // inside another region, or in teams
  kConcurrent,      // another thread's region is running across nodes
  kNotOnOrigin,     // forked by a thread of another node that is not in a region
  kLateLibrary,     // its code is in a library that other nodes have not loaded
  kUnmanagedStack,  // the forking thread's stack cannot be reached from other nodes
  kPrivateMemory,   // it has an address of memory that other nodes cannot reach
  kOwnMappings,     // the program has mapped memory by itself (launch/own_mappings.hpp)
  kThreadLocal,     // it shares a thread-local variable, and not by copyin
  kAfterCopyin,     // a region before it stayed for that, and with it the threads' threadprivates
  kAfterChange,     // a region before it stayed, and its threads have changed what cannot move
  kManyArguments,   // more than kMaxRegionWords
  kDearer,          // sharing it would cost more than it saves, as far as is known
  kTogether,        // all regions together are quicker on the origin
  kPutOff,          // to find out would cost more than it may, so far
  kNotWanted,       // --share=never
  kUnsupported,     // a construct known beforehand not to be carried (the ABI says so)
  kCount,
};
const char* text_of(SingleReason reason);

inline constexpr std::size_t kMaxRegionWords = 512;
inline constexpr std::size_t kMaxRegionExtra = 256;

// The outlined function of a region and its argument words (kmpc: the variadic arguments; gomp:
// the data pointer).
struct Outlined {
  void* function = nullptr;
  std::span<void* const> words;
};

// What the forking thread asks for. Pointers are valid during the call.
struct RegionRequest {
  Abi abi = Abi::kKmpc;
  Outlined outlined;
  const void* location = nullptr;  // kmpc: ident_t*, in memory that is the same on all nodes
  std::uint32_t threads = 0;       // num_threads clause; 0: the ICV
  std::int32_t proc_bind = 0;      // proc_bind clause in the ABI's own coding; 0: none
  SingleReason must_stay = SingleReason::kNone;
  // Where the addresses of the forking thread's thread-local variables stand that the region copies
  // in (copied_in.hpp): in what the words point to, or in the words for other nodes.
  std::span<void** const> copied_in;
  std::span<void* const> words_elsewhere;  // empty: the same as here
  bool shows_affinity = false;  // the region's threads show what they are
  // Further bytes that the ABI wants on each node, see Team::extra(). At most kMaxRegionExtra.
  std::span<const std::byte> extra;
};

// One participating node. Participants are ordered by node; the origin is always rank 0.
struct NodeShare {
  NodeId node;
  std::uint32_t threads = 0;
  std::uint32_t offset = 0;                 // global id of its first thread
  std::uint32_t speed = loops::kEvenSpeed;  // by which each of its threads gets iterations
  loops::Seam seam = loops::Seam::kFine;    // of static loops, where the compiler asks for bounds
};

// What the threads of a node did in one execution of a region: sums over them.
struct NodeTotals {
  std::uint32_t faults = 0;
  std::uint32_t marks = 0;       // TeamMark
  Nanos stall_ns = 0;            // waiting for pages
  Nanos busy_ns = 0;             // waiting neither for pages nor for other threads
  Nanos cpu_ns = 0;              // used, but not in waits; where the node has a limit of it, else 0
  std::uint64_t iterations = 0;  // of loops that are handed out at run time
  // Of its leader, in runs that are counted (leader_counters.hpp).
  std::uint64_t instructions = 0;
  std::uint32_t cache_misses = 0;  // so many at most
  // In the region for other threads, here and elsewhere; at most. Short, so that a join is a line.
  std::uint32_t waited_us = 0;
};
// What each node did in an execution, by node, as the model takes it.
struct Samples {
  std::array<loops::RegionPart, base::kMaxNodes> nodes{};
  bool divided = false;  // by the nodes' powers
};
// Of the nodes that there are totals of; the others' samples stay as they are. `by_threads`: each
// of the threads had the same share of loops whose bounds it computes itself.
// `joining`: how long the origin waited for the others in the end.
void take_samples(std::span<const NodeShare> shares, std::span<const NodeTotals> totals,
                  Nanos joining, bool by_threads, Samples& samples);

// A node that has a limit of CPU time is taken for as busy as it would be in many such executions.
// `limits` by node, or none; `rest` is the time since a region was last shared.
void hold_to_limits(std::span<const NodeShare> shares, std::span<const NodeTotals> totals,
                    std::span<const loops::CpuLimit> limits, Nanos rest, Samples& samples);

// Loops were divided by the nodes' speeds.
inline constexpr std::uint32_t kDividedBySpeed = 1;
// A thread has asked for its number or the team's size in a way that the compiler does not: what it
// computes from that may not hold in a team of another size.
inline constexpr std::uint32_t kKnowsTeamSize = 2;
// It has asked for the team's size alone: the program may keep that for other regions.
inline constexpr std::uint32_t kAskedForSize = 4;
// A thread, not the team's first one, has changed thread-local variables that cannot move.
inline constexpr std::uint32_t kChangedValues = 8;

// The region's statistics by place in the program. Written on the origin at the end of each run;
// other nodes know its site.
struct RegionRecord {
  std::string site;  // "file:line function", else symbol+offset
  const void* function = nullptr;
  Abi abi = Abi::kKmpc;
  std::uint64_t runs = 0;
  std::uint64_t runs_single = 0;
  std::uint32_t nodes = 1;                           // of the last run
  SingleReason single_reason = SingleReason::kNone;  // of the last run that stayed
  Nanos elapsed_ns = 0;
  std::uint64_t faults = 0;  // of all nodes
  Nanos stall_ns = 0;        // of all nodes' threads
  // What its executions tell about sharing it; made by the first one that can be shared.
  std::optional<loops::SharingModel> model;
  // At the end of its last execution: what all regions had taken, and how many had been shared.
  struct {
    Nanos time = 0;
    std::uint64_t shared_runs = 0;
  } seen;
  RegionCode code;                      // of its function, once it has a model
  ReachedCode reached;                  // from it; the same, where that matters
  // A region of gcc's is divided by NumberedParts that stay, and not by numbers of threads.
  bool by_numbers = false;
  bool is_profiled = false;             // its model began with what an earlier run had found
  bool knows_team_size = false;         // see kKnowsTeamSize; once seen, for ever
  std::uint64_t runs_come_home = 0;     // that began shared and ended on the origin
  Nanos lost_before_home = 0;           // by the last of these
  Samples samples;                      // of the last execution that was shared
  // Where its iterations are unlike: powers are of the cost of its loop, not of the iterations.
  std::optional<loops::CostSpread> spread;
  bool has_agreed = false;  // an execution that was divided so, with that
  // How many cores each node's power in the model is of, by node.
  std::vector<double> cores;
  std::bitset<base::kMaxNodes> took_part;  // in a shared execution that this model saw
  // What became of it, where its executions decide; and of the last of these.
  enum class Way : std::uint8_t { kShared, kAlone, kElsewhere };  // elsewhere: one other node's
  base::RegionOutcome shared, alone, elsewhere;
  Way last_way = Way::kShared;
  Nanos latest_alone = 0;  // what the last one alone took; 0: there was none
  void note_outcome(Nanos elapsed, Way way);
  // What leaders have counted in all runs in which they did, by node.
  struct Counted {
    std::uint64_t cache_misses = 0, instructions = 0;
  };
  std::array<Counted, base::kMaxNodes> counted{};
  void count(const Samples& latest);
  // The shares of the next one, and what they were dealt out from.
  std::vector<NodeShare> shares;
  struct Dealt {
    std::uint32_t threads = 0;
    std::uint32_t version = 0;  // of the model's powers
    std::uint32_t spreads = 0;  // that were found out before
    bool exact = true;
    bool alone = false;
    bool by_core = false;
    bool operator==(const Dealt&) const = default;
  };
  Dealt dealt;
  std::uint32_t spreads = 0;  // Dealt's
  Gathering::Region gathering;
  loops::CommonTrial::Member together;
  loops::CommonSharing::Member common;
  std::shared_ptr<const loops::SharingModel> apart;  // the model while it is shared with all others
  // The loops that executions across nodes have met; made with the model.
  std::shared_ptr<LoopBook> book;
};

// What becomes of the thread-local variables of a region's threads (thread_values.hpp).
enum class KeptValues : std::uint8_t {
  kNone,    // nobody looks
  kStay,    // each thread finds its own again in the next region, from the node that it began on
  kFollow,  // the same, and who comes home takes them along
};

// What was decided about one region. `shares.size()` < 2: it stays on this node.
struct RegionPlan {
  SingleReason reason = SingleReason::kNone;
  std::uint32_t threads = 0;  // to ask of the next runtime where the region stays; 0: its default
  std::span<const NodeShare> shares;  // the node's; as they are until the region has ended
  bool alone = false;  // only the origin has a part in its loops
  bool counts = false;  // leaders read their counters
  KeptValues values = KeptValues::kNone;
  // Its threads may come home (homecoming.hpp), once it has lost this, ns.
  bool may_come_home = false;
  double may_lose = 0;
  // Its static loop is handed out in parts, and how; or it is divided by numbers.
  Reentry reentry = Reentry::kNever;
  NumberedParts numbered;
  RegionRecord* record = nullptr;
  Nanos started = 0;

  bool global() const { return shares.size() > 1; }
  // It stays, and as many threads as there are cores stand in for those of its team (`numbered`).
  bool stands_in() const { return !global() && numbered.threads > 0; }
  // Its one loop is handed out in parts.
  bool is_in_parts() const {
    return reentry != Reentry::kNever && reentry != Reentry::kAsks && !numbered.stay;
  }
  // Its threads enter Node::thread_values().
  bool keeps_values() const { return values != KeptValues::kNone; }
};

// Where a region is, for people: "file:line function" from kmpc's `source`
// (";file;function;line;…") if that is known, else the function's symbol or object and an offset.
// Asks the loader: once per region, not once per run.
std::string site_of(const void* function, std::string_view source);

// The shares as the loop schedules take them.
std::vector<loops::Power> powers_of(std::span<const NodeShare> shares);

// Deals `threads` out over nodes of the given capacities, origin first, each filled up before the
// next; what exceeds their sum is dealt in proportion to capacity. Pure. Nodes that get none are
// left out. `threads` > 0; the origin's capacity > 0.
std::vector<NodeShare> pack_threads(std::uint32_t threads, std::span<const std::uint32_t> capacity);

}  // namespace amasia::omp
