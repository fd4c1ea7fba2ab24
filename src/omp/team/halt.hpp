// SPDX-License-Identifier: Apache-2.0
// A node's threads, stopped in the middle of the program, so that they can come home from there
// (homecoming.hpp has those that come to a barrier; home_call.hpp is the origin's side). Not on the
// origin, whose threads are at home.
//
//   origin     this node's handler   its threads
//   Halt       interrupts all        each, in a signal handler: is it in the program, with nothing
//                                    open? Holds, or refuses. The last one that holds: Halted.
//                                    In a library's function: is followed to where it is back
//   Verdict    notes it, wakes       go on where they were, or keep their state and leave their
//                                    stacks
//
// What a thread may have open is what others would miss if it went, or itself: locks, loops that
// are handed out, a place in the C library. It holds on its alternate stack: the managed one may be
// away, and is left as it is.
//
// field        | written by                   | read by           | ordered by
// region_      | open, close                 | handler           | mutex_
// members_     | each its thread             | handler           | release/acquire; memory: mutex_
// vote_        | handler, threads            | both              | compare-exchange
// news_        | who changes vote_           | who holds         | release/acquire
// H1 A thread that was interrupted may have had any lock: unless it holds, it touches atomics only.
// H2 Attempts are numbered in the order in which the origin makes them, one at a time, and all that
//    is said about one is in one word (halt_vote.hpp); who finds a later one knows that its own is
//    over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/base.hpp"
#include "omp/meeting/team_messages.hpp"
#include "omp/team/halt_vote.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class Team;

class Halt final : public os::Interrupter, public os::Follower {
 public:
  explicit Halt(Team& team) : team_(team) {}
  Halt(const Halt&) = delete;
  Halt& operator=(const Halt&) = delete;

  // A region begins from which threads may be taken; it ends, or one begins from which they may not
  // be. Native stack; may block for as long as the handler takes.
  void open(std::uint32_t region, std::uint32_t threads);
  void close();
  // The calling thread begins and ends its part of it.
  void enter(std::uint32_t local_id);
  void leave(std::uint32_t local_id);

  // Handler side. False: the message cannot be.
  bool on_look(const LookBody& look);
  bool on_halt(const HaltBody& halt);
  bool on_verdict(const VerdictBody& verdict);

 private:
  struct Member {
    std::atomic<int> thread_id{0};  // 0: not in the region
    const std::atomic<bool>* carrying = nullptr;

    bool can_be_interrupted() const;
  };

  void interrupted(const os::InterruptedThread& thread) override;
  Next follow(const os::InterruptedThread& thread) noexcept override;
  bool is_in_program(const os::InterruptedThread& thread) const;
  bool may_hold(const ThreadFrame& frame, const os::InterruptedThread& thread) const;
  bool asks_all(std::uint32_t number);
  void refuse(std::uint32_t number);
  bool hold(std::uint32_t number);
  void tell(std::uint32_t number, bool held);
  // True: the vote has been changed by `by`; the vote as it is then.
  template <typename... Arguments>
  std::pair<bool, HaltVote> change(bool (HaltVote::*by)(Arguments...), Arguments... arguments);
  void ring();

  Team& team_;
  std::mutex mutex_;
  std::uint32_t region_ = 0;  // 0: none
  std::uint32_t threads_ = 0, room_ = 0;
  std::unique_ptr<Member[]> members_;
  std::atomic<std::uint64_t> vote_{HaltVote().word()};
  std::atomic<std::uint32_t> news_{0};
};

}  // namespace amasia::omp
