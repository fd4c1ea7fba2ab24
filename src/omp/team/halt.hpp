// SPDX-License-Identifier: Apache-2.0
// A node's threads, stopped in the middle of the program, so that they can come home from there
// (homecoming.hpp has those that come to a barrier; home_call.hpp is the origin's side).
//
//   origin     this node's handler   its threads
//   Halt       interrupts all        each, in a signal handler: is it in the program, with nothing
//                                    open? Holds, or refuses. The last one that holds: Halted.
//                                    In a library's function: is followed to where it is back
//   Verdict    notes it, wakes       go on where they were, or keep their state and leave their
//                                    stacks
//
// The origin's own threads are at home. They are stopped so, too, where the others hold and the
// leader spins on what these would write, so that it comes to no barrier to take them in at:
// HomeCall asks in the place of the handler, and the leader gives the verdict.
//
// What a thread may have open is what others would miss if it went, or itself: locks, loops that
// are handed out, a place in the C library. It holds on its alternate stack: the managed one may be
// away, and is left as it is.
//
// A thread in one of our calls out of which it may go (leavable_call.hpp) is not interrupted, since
// it is on its native stack there. It is asked, and stops once the call is done, or waits. So is
// one that has a lock: it stops when it has released it.
//
// field        | written by                   | read by           | ordered by
// region_      | open, close                 | handler           | mutex_
// members_     | each its thread             | handler           | release/acquire; memory: mutex_
// Member::call | the thread; who asks it     | the thread        | exchange, compare-exchange
// vote_        | handler, threads            | both              | compare-exchange
// sample_      | the leader                  | any               | its own
// glance_      | the leader, if it is wanted | who wants it      | release/acquire of is_wanted
// news_        | who changes vote_           | who holds         | release/acquire
// H1 A thread that was interrupted may have had any lock: unless it holds, it touches atomics only.
// H2 Attempts are numbered in the order in which the origin makes them, one at a time, and all that
//    is said about one is in one word (halt_vote.hpp); who finds a later one knows that its own is
//    over.
// H3 Of SIGURGs that wait for a thread the kernel keeps one, so who interrupts it in a region does
//    so by this, whose handler looks at all that is wanted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/base.hpp"
#include "omp/meeting/team_messages.hpp"
#include "omp/team/halt_vote.hpp"
#include "omp/team/spin_sample.hpp"
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

  // The thread of `frame` begins a call of ours out of which it may go; in it, has been asked to
  // stop, which what it waits for ends with; ends it: whether it has been asked. Then it is to
  // stop(), on its native stack, which blocks until there is a verdict. True: it is to go home.
  void begin_call(const ThreadFrame& frame);
  bool is_asked(const ThreadFrame& frame) const;
  bool end_call(const ThreadFrame& frame);
  bool stop(ThreadFrame& frame);

  // Handler side. False: the message cannot be.
  bool on_look(const LookBody& look);
  bool on_halt(const HaltBody& halt);
  bool on_verdict(const VerdictBody& verdict);

  // On the origin, by HomeCall, which numbers attempts: its threads are to stop, for the leader to
  // take the others in. False: they cannot. The attempt is over, unless all have stopped.
  bool ask_here(std::uint32_t number);
  void give_up_here(std::uint32_t number) { refuse(number); }

  // The leader's thread, 0: it is not in the region. May block for as long as open() does.
  int leader() const;
  // The CPU time that it has used, less what it has spun in the region; -1: it is not there. Looks
  // again at what it does: to be called from time to time, by one thread at a time.
  Nanos computed_by_leader();
  // On the origin, by HomeCall: whether one of its threads is in such a call.
  bool has_call() const;
  // On the origin, by HomeCall: what the leader has in its registers, in the program or in a
  // function that it calls; nullopt: it is on its native stack, or has not been asked yet as it
  // does not run. Blocks for up to a millisecond.
  std::optional<os::InterruptedThread::Registers> glance_at_leader();
  // What the leader has spun in its region so far, ns; 0 where it cannot halt. Threads of the team.
  Nanos spun() const { return region_ != 0 ? sample_.spun() : 0; }

 private:
  enum class Call : std::uint32_t { kNone, kUnderWay, kAsked };

  struct Member {
    std::atomic<int> thread_id{0};  // 0: not in the region
    const std::atomic<bool>* carrying = nullptr;
    std::atomic<Call> call{Call::kNone};

    bool can_be_interrupted() const;
    bool is_in_call() const { return call.load(std::memory_order_acquire) != Call::kNone; }
    // True: it is in a call, at whose end it stops.
    bool ask_in_call();
    // The member's own: it will.
    void ask_at_next_call();
    // False: it has been asked to stop.
    bool end_call();
  };

  // Of the leader, when it is wanted.
  struct Glance {
    std::atomic<std::uint32_t> is_wanted{0};
    bool is_programs = false;
    os::InterruptedThread::Registers registers{};
  };

  void interrupted(const os::InterruptedThread& thread) override;
  void note_leader(const os::InterruptedThread& thread);
  // nullptr: the thread has no part in attempts.
  Member* member_of(const ThreadFrame& frame) const;
  void vote(ThreadFrame* frame, const os::InterruptedThread& thread, std::uint32_t number);
  Next follow(const os::InterruptedThread& thread) noexcept override;
  bool is_in_program(const os::InterruptedThread& thread) const;
  bool may_hold(const ThreadFrame& frame, const os::InterruptedThread& thread) const;
  bool asks_all(std::uint32_t number);
  void refuse(std::uint32_t number);
  bool hold(const ThreadFrame& frame, std::uint32_t number);
  void tell(std::uint32_t number, bool held);
  // True: the vote has been changed by `by`; the vote as it is then.
  template <typename... Arguments>
  std::pair<bool, HaltVote> change(bool (HaltVote::*by)(Arguments...), Arguments... arguments);
  void ring();

  Team& team_;
  mutable std::mutex mutex_;
  std::uint32_t region_ = 0;  // 0: none
  std::uint32_t threads_ = 0, room_ = 0;
  std::unique_ptr<Member[]> members_;
  std::atomic<std::uint64_t> vote_{HaltVote().word()};
  std::atomic<std::uint32_t> news_{0};
  SpinSample sample_;
  Glance glance_;
};

}  // namespace amasia::omp
