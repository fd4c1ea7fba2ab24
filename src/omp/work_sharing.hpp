// SPDX-License-Identifier: Apache-2.0
// Loops of global teams that are handed out at run time, for both ABIs. Each node has a pool per
// loop; the origin has the global pools, from which a thread that finds its node's pool low fetches
// for the whole node. Static schedules need neither.
// docs/protocols/work_sharing.md has the messages.
//
// field             | written by                          | guarded by
// open_, spare_     | threads that begin and end loops,   | loops_mutex_
//                   | handler (looks only)                |
// NodeLoop::pool    | threads of the node, handler        | NodeLoop::mutex
// global_           | handler and threads of the origin   | global_mutex_
// W1 Mutexes are held on native stacks only, never across a send or a wait, and in the order
//    loops_mutex_, NodeLoop::mutex; nothing managed is touched under them.
// W2 All threads of a team meet the same loops in the same order, so (region, count of loops met)
//    names a loop on every node.
// W3 A node's loop stays until all its threads have ended it and no request is under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "loops/loops.hpp"
#include "omp/frame.hpp"

namespace amasia::omp {

class Node;
class Team;

class WorkSharing final : public fabric::Handler {
 public:
  // Registers itself for kWorkSharingFirst … kWorkSharingLast. The node outlives it.
  explicit WorkSharing(Node& node);
  ~WorkSharing() override;

  // The calling thread, that of `frame`, enters its team's next loop. All threads of the team give
  // equal arguments. No barrier is implied; any number of loops may be under way.
  void begin(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule);
  // The thread's next iterations, never empty; or false: it has left the loop. To be called until
  // then. May wait for a message.
  bool next(ThreadFrame& frame, loops::Iterations& range);

  // Requests for iterations that went to the origin since start, from this node.
  std::uint64_t refills() const { return refills_.load(std::memory_order_relaxed); }

  void on_message(const fabric::Incoming& message) override;

 private:
  struct NodeLoop;
  struct GlobalLoop;
  struct WantBody;
  struct GiveBody;

  [[gnu::noinline]] NodeLoop* open(const Team& team, std::uint64_t number,
                                   loops::ScheduleRequest schedule, std::uint64_t count);
  [[gnu::noinline]] bool next_from_pool(NodeLoop& loop, loops::Iterations& range);
  [[gnu::noinline]] void close(NodeLoop& loop);
  void ask(NodeLoop& loop);
  void deliver(NodeLoop& loop, loops::Refill refill);
  loops::Refill take_global(const WantBody& want);
  NodeLoop* find(std::uint32_t region, std::uint64_t number);
  void retire_if_done(NodeLoop& loop);

  Node& node_;
  std::mutex loops_mutex_;
  std::vector<std::unique_ptr<NodeLoop>> open_;
  std::vector<std::unique_ptr<NodeLoop>> spare_;
  std::mutex global_mutex_;
  std::uint32_t global_region_ = 0;  // whose loops global_ holds
  std::map<std::uint64_t, GlobalLoop> global_;
  std::atomic<std::uint64_t> refills_{0};
};

}  // namespace amasia::omp
