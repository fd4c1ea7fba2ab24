// SPDX-License-Identifier: Apache-2.0
// Loops with ordered parts, of global teams, for both ABIs. The turn goes from chunk to chunk in
// the order of iterations; loops/turns.hpp says which thread has the next one. To a thread of the
// same node it goes by a store, to one of another node by a message to that node.
// docs/protocols/work_sharing.md has the message.
//
// field              | written by                           | guarded by
// table_             | threads that begin and end loops,    | mutex_
//                    | handler                              |
// OrderedLoop::turn  | who has the turn, handler            | atomic: release; partner: who waits
// O1 The mutex is held on native stacks only, never across a send or a wait, and nothing managed is
//    touched under it.
// O2 Every chunk's turn is awaited and passed by the thread that has the chunk, so when all threads
//    of a node have left a loop, no message about it is under way to that node, unless they have
//    gone home: then it says what all who came knew, and the next region drops it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "loops/loops.hpp"
#include "omp/frame.hpp"
#include "omp/work_sharing/turn_table.hpp"

namespace amasia::omp {

class Node;
class Team;

class Turns final : public fabric::Handler {
 public:
  // Registers itself for kTurnMessage. The node outlives it.
  explicit Turns(Node& node);
  ~Turns() override;

  // The calling thread, that of `frame`, enters its team's next loop; as WorkSharing::begin().
  void begin(ThreadFrame& frame, const loops::Space& space, loops::ScheduleRequest schedule,
             const LoopSite& site);
  // The thread's next iterations, never empty; or false: it has left the loop. What was ordered in
  // the iterations before is over. May wait.
  bool next(ThreadFrame& frame, loops::Iterations& range);
  // Around the ordered part of an iteration, at most one in each. enter() waits until the ordered
  // parts of all iterations before are over. Out of either the thread may go home (Halt): then it
  // is in the program again as another thread.
  void enter(ThreadFrame& frame);
  void leave(ThreadFrame& frame);

  // The thread goes home out of the last of the loops that it has met (team/homecoming.hpp). On the
  // node where it was: the turn as far as it is known there. At home, where the loop is_open():
  // what is the thread's in ThreadLoop::slot. Native stack.
  std::uint64_t depart(const ThreadFrame& frame);
  void* join(std::uint32_t region, std::uint64_t number, std::uint64_t turn);
  // Whether the thread is in a loop with ordered parts; threads of this node are in the last of the
  // region's first `met` loops, which is one.
  static bool is_in_one(const ThreadLoop& loop) { return loop.ordered && loop.slot != nullptr; }
  bool is_open(std::uint32_t region, std::uint64_t met);

  void on_message(const fabric::Incoming& message) override;

 private:
  struct TurnBody;
  // To whom the turn goes on another node.
  struct Told {
    std::uint64_t number, iteration;
    std::uint32_t thread;
  };

  [[gnu::noinline]] OrderedLoop* open(const Team& team, std::uint64_t number);
  [[gnu::noinline]] void close(const Team& team, std::uint64_t number);
  std::optional<Told> pass(ThreadFrame& frame);
  void await(const ThreadFrame& frame, const std::atomic<std::uint64_t>& turn);
  [[gnu::noinline]] static void enter_at_home();
  [[gnu::noinline]] void send(const Team& team, const Told& told);

  Node& node_;
  std::mutex mutex_;
  TurnTable table_;
};

// The next iterations of the loop that the thread is in, ordered or not.
bool next_iterations(ThreadFrame& frame, loops::Iterations& range);

}  // namespace amasia::omp
