// SPDX-License-Identifier: Apache-2.0
// A region that does not pay comes home on the way. A program may have its time loop inside of one
// region, which then runs once, so that no later execution can be kept on the origin. Static loops
// cannot leave a node out either: within a region each thread's part of them is promised to stay
// (OpenMP 5.2, 11.5.3), and programs count on it. But threads can move. At a barrier of the program
// a thread is in our code: what it will need is on its managed stack, which the origin sees, too,
// and in the registers that a call keeps. So the threads of the other nodes go on as threads of the
// origin, with the numbers and the parts of loops that they had (beyond the papers).
//
//   origin's leader                       another node's leader       its threads
//   now and then meets with kTell         meets, tells its work
//   wants to go: homeward.hpp
//   meets with kComesHome                 meets; with kStays if its threads may not go
//   waits for travellers                  releases its threads        keep their state, leave their
//                                                                     stacks; the last sends all
//   starts a guest for each traveller                                 have ended the region
//   releases                                                          join
//   the team is the origin's alone
//
// Thread-local variables that the region may use (code/reached_code.hpp) go along.
//
// Who may not go: threads whose program may have an address of such a variable somewhere
// (code/thread_pointer.hpp), that keep the address of their errno, that hold locks (who released
// one elsewhere would be another node), whose program uses constructs that the next runtime knows
// its threads by (tasks, cancellation: Services::can_move_threads()), or whose node has this code
// at another address.
//
// field        | written by                  | read by            | ordered by
// frames_      | start(), before the threads | each its thread    | the thread's begin
// arrived_     | guests, leader              | leader             | release/acquire
// generation_  | leader                      | guests             | release/acquire
// ended_       | guests                      | leader             | release/acquire
// G1 A guest arrives once in each generation: the leader sets arrived_ back before it lets them go.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "omp/frame.hpp"
#include "omp/meeting/team_messages.hpp"
#include "omp/team/spin_watch.hpp"
#include "os/os.hpp"

namespace amasia::omp {

// The threads on the origin that go on where others have left.
class Guests {
 public:
  Guests(Team& team, std::span<const Traveller> travellers);
  Guests(const Guests&) = delete;
  Guests& operator=(const Guests&) = delete;

  // On the leader's native stack: they begin. Once.
  void start();
  // The node's local barrier, together with the next runtime's for its own threads. A guest's part;
  // may block.
  void arrive_and_wait();
  // A thread of the origin's own, which may have to share its core with guests. Any of them, again.
  void watch(const ThreadFrame& frame) const {
    if (watch_ != nullptr) watch_->enter(frame.global_id);
  }
  // The leader's: on its native stack, may block; and lets them go.
  void await_all();
  void let_go();
  // On a native stack: blocks until they have come to the region's end.
  void await_end();
  // f(frame) for each, in the order of their numbers in the team, in which nodes that had ended the
  // region have no part any more.
  template <typename Function>
  void each(Function f) const {
    for (const auto& guest : guests_) f(guest->frame);
  }
  // How long a thread of the node looks at what it waits for before it sleeps.
  Nanos spin() const { return spin_; }
  // Of what they have asked (region.hpp). After await_end().
  std::uint32_t marks() const;

 private:
  struct Guest {
    Guests* all = nullptr;
    Traveller from;
    ThreadFrame frame;
    pthread_t thread{};
    ThreadState end;  // where its part of the region ends
  };
  static void* run(void* guest);
  void go_on(Guest& guest);

  Team& team_;
  Nanos spin_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> ended_{0};
  // Where there are more threads than cores.
  os::ShortTurns short_turns_{generation_};
  SpinWatch* watch_ = nullptr;
};

}  // namespace amasia::omp
