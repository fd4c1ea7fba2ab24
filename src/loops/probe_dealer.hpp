// SPDX-License-Identifier: Apache-2.0
// HetProbe and HetProbe-I (libHetMP, ACM TOCS 2022, 3.2 to 3.4 and 4.1): who gets which iterations
// of a loop, by what the first ones tell about the nodes. Pure state on the origin; what a node
// begins with it computes by itself.
//
// Each node has a *territory*, what of the loop is meant for it and was not given to it yet: at
// first its even block, as a static loop would have it, so that what it touches for its probe is
// what it will need. A node is given the front of its territory, piece by piece.
//   probing   Every thread of every node executes equally long pieces, which grow until all
//             together have done the probe's share of the loop. A node that is ready early goes on
//             in its territory, or in the tail of the largest one: nobody waits for the slowest.
//   decided   Once every node has told something and the share is done, decide_shares() weighs
//             the nodes, and what is left of all territories is regrouped, in the order of ranks:
//             each node gets what lets all finish at once, given what they have in hand.
//             HetProbe gives a node its territory as a whole. HetProbe-I gives parts of it, decides
//             anew whenever the re-probe's share of the loop was executed, regroups if the nodes
//             would end far apart or one has nothing left, and lets nodes that are not used
//             execute a piece now and then, in case they became worth it; they wait meanwhile
//             (parked).
// With speeds known from earlier runs a loop begins decided, and territories stay as they are
// unless a node is unused or would be out of work for long.
//
// Invariants: (a) territories are disjoint and hold, together with what was given, each iteration
// once; (b) a node is parked only with an empty territory, and answered when it gets one or nothing
// is left; (c) who was told that there is no more is not counted on. Numbers may fall from one
// range of a thread to the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "loops/cost_spread.hpp"
#include "loops/pool.hpp"
#include "loops/probe_decision.hpp"
#include "loops/report.hpp"

namespace amasia::loops {

struct ProbeRules {
  std::uint32_t probe_percent = 10;   // of the iterations, by all nodes together; 1 … 50
  std::uint32_t reprobe_percent = 10;  // 1 … 100; of HetProbe-I
};

// What all nodes know of a loop when it begins, beside their powers.
struct LoopTerms {
  ScheduleRequest schedule;
  ProbeRules rules;
  std::uint64_t count = 0;
  bool known = false;  // the powers' speeds were measured in earlier runs
  // Or they are those of its region, which divides static loops by them: so that nodes' territories
  // are what they would have of such a loop whose variable begins with `first`.
  bool by_region = false;
  std::uint64_t first = 0;

  constexpr bool reprobes() const { return schedule.kind == ScheduleKind::kHetProbeI; }
};

struct Grant {
  std::size_t rank = 0;
  Refill refill;
};

// The first refill of the node of `rank`. No allocation.
Refill first_probe(const LoopTerms& loop, std::span<const Power> powers, std::size_t rank);

class ProbeDealer {
 public:
  ProbeDealer() = default;
  // Every node has been given its first_probe().
  ProbeDealer(const LoopTerms& loop, std::span<const Power> powers);

  // The node of `rank` asks for more and tells what it has executed since it told last. Appends the
  // answers that are due: to this node and, maybe, to parked ones.
  void ask(std::size_t rank, const Report& report, std::vector<Grant>& grants);

  // The others cannot come for what is theirs: all of it is given to the node of `rank`, if that is
  // parked. Appends its answer.
  void take_over(std::size_t rank, std::vector<Grant>& grants);

  std::uint64_t remaining() const { return left_; }
  // How often shares were decided; and what the last time said.
  std::uint32_t decisions() const { return decisions_; }
  const ProbeDecision& decision() const { return decision_; }
  // What was expected, at that time, of all that was not executed by then; 0: nothing was decided.
  double expected_ns() const { return expected_ns_; }
  std::uint64_t given(std::size_t rank) const { return nodes_[rank].given; }
  std::uint32_t speed(std::size_t rank) const { return nodes_[rank].power.speed; }
  // Of a loop that is known by its region; else empty.
  const CostSketch& sketch() const { return sketch_; }
  bool is_valid() const;

 private:
  struct Node {
    Power power;
    std::vector<Iterations> territory;  // rising
    std::uint64_t size = 0;             // of the territory
    std::uint64_t given = 0;
    std::uint64_t done = 0;
    std::uint64_t piece = 0;  // of the next probe
    Report window;            // since the last decision
    Cost cost;                // of the last window in which it worked
    bool parked = false;
    bool told = false;             // that there is no more
    std::uint32_t idle_waits = 0;  // decisions until it is tried again
    std::uint32_t idle_times = 0;  // how often it was tried
  };

  bool may_decide() const;
  bool all_told() const;
  bool keeps_territories() const;
  void decide();
  bool is_out_of_balance() const;
  void try_idle_nodes();
  void regroup();
  void set_targets(std::vector<std::uint64_t>& targets) const;
  Node& largest();
  void steal(std::size_t rank, std::uint64_t size);
  void answer(std::size_t rank, std::vector<Grant>& grants);
  Refill probe_more(Node& node);
  std::uint64_t batch(const Node& node) const;
  std::uint64_t timed_batch(const Node& node) const;
  Iterations take_front(Node& node, std::uint64_t size);

  LoopTerms loop_;
  std::vector<Node> nodes_;
  std::uint64_t left_ = 0;  // in all territories
  std::uint64_t done_ = 0;
  std::uint64_t done_at_decision_ = 0;
  std::uint64_t most_piece_ = 1;
  std::uint32_t decisions_ = 0;
  bool decided_ = false;
  const Node* asking_ = nullptr;  // during ask()
  ProbeDecision decision_;
  double expected_ns_ = 0;
  CostSketch sketch_;
};

}  // namespace amasia::loops
