// SPDX-License-Identifier: Apache-2.0
// Loops of global teams that are handed out at run time, for both ABIs. Each node has a pool per
// loop; the origin has the dealers, which a thread that finds its node's pool low asks for the
// whole node, telling what the node has executed meanwhile and how long it took. Static schedules
// need neither. docs/protocols/work_sharing.md has the messages.
//
// field             | written by                          | guarded by
// open_, spare_     | threads that begin and end loops,   | loops_mutex_
//                   | handler (looks only)                |
// known_, latest_   | the same, and handler               | loops_mutex_
// NodeLoop::pool,   | threads of the node, handler        | NodeLoop::mutex
//   news, want      |                                     |
// global_, cache_,  | handler and threads of the origin   | global_mutex_
//   outcomes_,      |                                     |
//   advice_,        |                                     |
//   told_after_end_ |                                     |
// W1 Mutexes are held on native stacks only, never across a send or a wait, and in the order
//    loops_mutex_, then NodeLoop::mutex or global_mutex_; nothing managed is touched under them.
// W2 All threads of a team meet the same loops in the same order, so (region, count of loops met)
//    names a loop on every node.
// W3 A node's loop stays until all its threads have ended it and no request is under way. If it is
//    cancelled, both may never be: then it stays until the next region's first loop.
// W4 All nodes begin a loop with the same terms: what is known of it came with the last answer of
//    its last run by these nodes, which all of them have before a thread of theirs leaves that run.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "loops/loops.hpp"
#include "omp/frame.hpp"
#include "omp/work_sharing/loop_outcomes.hpp"
#include "omp/work_sharing/loop_rest.hpp"

namespace amasia::omp {

class Node;
class Team;

// The same on all nodes.
struct LoopSettings {
  // Carries out every loop that is handed out at run time or left to the runtime; kAuto: dynamic
  // and guided loops as they are, those left to the runtime by HetProbe-I.
  loops::ScheduleKind schedule = loops::ScheduleKind::kAuto;
  // OMP_SCHEDULE, where it names a schedule that the next runtime does not know.
  std::optional<loops::ScheduleRequest> runtime;
  loops::ProbeRules rules;
};
LoopSettings loop_settings(const base::Options& options);

class WorkSharing final : public fabric::Handler {
 public:
  // Registers itself for kWorkSharingFirst … kWorkSharingLast. The node outlives it.
  explicit WorkSharing(Node& node, LoopSettings settings = {});
  ~WorkSharing() override;

  // The calling thread, that of `frame`, enters its team's next loop. All threads of the team give
  // equal arguments. No barrier is implied; any number of loops may be under way. `site`: where in
  // the program the loop is, by which its runs are known; nullptr: nowhere.
  void begin(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule,
             const LoopSite& site);
  // The same of a static loop whose iterations are handed out in parts: first each node's share by
  // the region's powers, as Team::static_share() would have it, then what others have left of
  // theirs. Not of one node that works alone. Nothing is remembered from run to run.
  void begin_static(ThreadFrame& frame, const loops::Space& space, const LoopSite& site);
  // The thread's next iterations, never empty; or false: it has left the loop. To be called until
  // then. May wait for a message.
  bool next(ThreadFrame& frame, loops::Iterations& range);

  // The thread leaves the loop that it is in before its end: the loop, or its region, has been
  // cancelled.
  void leave(ThreadFrame& frame);

  // Threads of other nodes come home out of the middle of the program (team/halt.hpp), all of which
  // have met `loops` loops of `region`. On such a node, while all of its threads stand still:
  // whether no request of theirs is under way. On the origin, whose threads have all left the last
  // of these loops, or go on with it: how many iterations of it no thread has begun and no other
  // node been given. 0: or it is not handed out.
  bool may_depart(std::uint32_t region, std::uint64_t loops);
  std::uint64_t left_at_home(std::uint32_t region, std::uint64_t loops);
  // Whether something is known of it from run to run, which all its nodes have to know alike.
  bool is_remembered(std::uint32_t region, std::uint64_t loops);
  // They are on their way: what is left of that loop leaves the node, and goes to them on the
  // origin, where adopt() returns what is theirs in ThreadLoop::slot. What is known of the loop's
  // runs is forgotten there, too, by forget(), since not all nodes have heard the end of this one.
  // On native stacks.
  LoopRest depart(std::uint32_t region, std::uint64_t loops);
  void* adopt(std::uint32_t region, const LoopRest& rest);
  void forget(std::uint32_t region, std::uint64_t loops);

  // On the origin, when `region` has ended, once: what its loops say about the nodes.
  LoopAdvice take_advice(std::uint32_t region);
  // On the origin: what came of a region's loop; nullopt: nothing is known. Any thread.
  std::optional<LoopOutcome> outcome_of(const void* function, const void* code) const;

  // Requests for iterations that went to the origin since start, from this node.
  std::uint64_t refills() const { return refills_.load(std::memory_order_relaxed); }

  const LoopSettings& settings() const { return settings_; }
  // Whether nobody has asked for a schedule of all loops.
  bool leaves_static_loops() const { return settings_.schedule == loops::ScheduleKind::kAuto; }

  void on_message(const fabric::Incoming& message) override;

 private:
  struct NodeLoop;
  struct GlobalLoop;
  struct Sharer;
  struct WantBody;
  struct Want;
  struct GiveBody;
  struct Give;
  // What a node knows of a loop between two runs.
  struct History {
    loops::NextRun next;
    loops::Report late;  // executed after the last request of the last run
  };

  loops::ScheduleRequest carried_out(loops::ScheduleRequest asked) const;
  loops::LoopTerms terms_of(const WantBody& body) const;
  [[gnu::noinline]] NodeLoop* open(const Team& team, const ThreadLoop& begun, const void* site);
  [[gnu::noinline]] bool next_from_pool(NodeLoop& loop, const Team& team, ThreadLoop& thread,
                                        loops::Iterations& range);
  [[gnu::noinline]] void close(NodeLoop& loop);
  void note_left(const NodeLoop& loop);
  void conclude(const GlobalLoop& loop);
  void note_spread(const GlobalLoop& loop);
  void conclude_dealt_at_once(const NodeLoop& loop, Nanos elapsed);
  void expect(GlobalLoop& loop);
  void read_clock(ThreadLoop& thread) const;
  loops::Report executed(ThreadLoop& thread, std::uint32_t threads) const;
  void ask(NodeLoop& loop, const WantBody& body);
  void receive(const GiveBody& give, std::span<const std::uint32_t> speeds);
  NodeLoop* find(std::uint32_t region, std::uint64_t number);
  NodeLoop& open_another();
  void drop(const NodeLoop& loop);
  void retire_if_done(NodeLoop& loop);
  // On the origin.
  void enter_region(std::uint32_t region);
  GlobalLoop& global_loop(const WantBody& body, std::span<const Sharer> sharers);
  const loops::NextRun& next_run(GlobalLoop& loop);
  std::vector<Give> ask_dealer(const WantBody& body, std::span<const Sharer> sharers);
  std::vector<Give> answers(GlobalLoop& loop, std::span<const loops::Grant> grants);
  bool take_over(const NodeLoop& waits);
  void hand_out(const std::vector<Give>& gives);

  Node& node_;
  const LoopSettings settings_;
  loops::CpuLimit limit_;  // of this node
  std::mutex loops_mutex_;
  std::vector<std::unique_ptr<NodeLoop>> open_;
  std::vector<std::unique_ptr<NodeLoop>> spare_;
  std::map<std::uint64_t, History> known_;
  // The loop that was opened last, and the one whose knowledge it began with.
  struct {
    std::uint32_t region = 0;
    std::uint64_t number = 0, key = 0;
  } latest_;
  mutable std::mutex global_mutex_;
  std::uint32_t global_region_ = 0;  // whose loops global_ holds
  std::map<std::uint64_t, GlobalLoop> global_;
  loops::ProbeCache cache_;
  // By key and rank: of a loop's last run, after a node was told that there is no more.
  std::map<std::uint64_t, std::vector<loops::Report>> told_after_end_;
  LoopOutcomes outcomes_;
  LoopAdvice advice_;  // of region global_region_
  std::atomic<std::uint64_t> refills_{0};
};

// What a schedule(runtime) loop is shared by. Where the next runtime says `auto`: the schedule that
// OMP_SCHEDULE names, if it is one that the next runtime does not know (options.hpp). Else the one
// of --schedule, if there is, also in the place of `static`, which libomp says where nobody has
// asked for anything. Else as it is said. On a thread of a global team, or one that forks it.
loops::ScheduleRequest named_by_user(loops::ScheduleRequest said);

}  // namespace amasia::omp
