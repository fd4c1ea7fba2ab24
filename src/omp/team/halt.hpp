// SPDX-License-Identifier: Apache-2.0
// A node's threads, stopped in the middle of the program, so that they can come home from there
// (homecoming.hpp has those that come to a barrier; home_call.hpp is the origin's side). Not on the
// origin, whose threads are at home.
//
//   origin     this node's handler   its threads
//   Halt       interrupts all        each, in a signal handler: is it in the program, with nothing
//                                    open? Holds, or refuses. The last one that holds: Halted
//   Verdict    notes it, wakes       go on where they were, or keep their state and leave their
//                                    stacks
//
// What a thread may have open is what others would miss if it went, or itself: locks, loops that
// are handed out, a place in the C library. It holds on its alternate stack: the managed one may be
// away, and is left as it is.
//
// field        | written by                   | read by           | ordered by
// region_      | open, close                 | handler           | mutex_
// thread_ids_  | each its thread             | handler           | release/acquire; memory: mutex_
// attempt_     | handler                     | threads           | release/acquire
// held_        | threads, handler            | threads           | release/acquire
// refused_     | threads                     | threads           | release/acquire of news_
// told_        | handler                     | threads           | release/acquire
// H1 A thread that was interrupted may have had any lock: unless it holds, it touches atomics only.
// H2 Attempts are numbered in the order in which the origin makes them, one at a time; who finds a
//    later one, or a verdict about it, knows that its own is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/base.hpp"
#include "omp/meeting/team_messages.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class Team;

class Halt final : public os::Interrupter {
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
  void interrupted(const os::InterruptedThread& thread) override;
  bool may_hold(const ThreadFrame& frame, const os::InterruptedThread& thread) const;
  bool interrupts_all(std::uint64_t attempt);
  void refuse(std::uint64_t attempt);
  bool hold(std::uint64_t attempt);
  bool count_held(std::uint64_t attempt);
  void tell(std::uint64_t attempt, bool held);
  void ring();

  Team& team_;
  std::mutex mutex_;
  std::uint32_t region_ = 0;  // 0: none
  std::uint32_t threads_ = 0, room_ = 0;
  std::unique_ptr<std::atomic<int>[]> thread_ids_;  // 0: not in the region
  std::atomic<std::uint64_t> attempt_{0};           // key_of(region, number)
  std::atomic<std::uint64_t> held_{0};  // the attempt's number, and how many threads hold for it
  std::atomic<std::uint64_t> refused_{0}, refusal_told_{0};
  std::atomic<std::uint64_t> told_{0};  // the last attempt about which there is a verdict
  std::atomic<bool> goes_home_{false};  // that; written before it
  std::atomic<std::uint32_t> news_{0};  // rises with each of these
};

}  // namespace amasia::omp
