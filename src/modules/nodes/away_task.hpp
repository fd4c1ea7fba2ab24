// SPDX-License-Identifier: Apache-2.0
// What becomes of a task that another node may do, as pure state machines: whose it is, when its
// value comes, when its creator's finish scope may end, and what is told to its creator's node.
// docs/protocols/nodes.md has the tables; the exploration in away_task_test.cpp runs this code.
//
// Words. A *flexible* task is one that any node may do. It has a *ticket*: an ordinary task of its
// creator's finish scope, which does it unless it has been stolen. A task is *over* when it and all
// tasks that it created, directly or by one another, on whichever node, have ended.
//
// Invariants:
//  (A1) A task is done once: by its ticket, or by the node that it was sent to.
//  (A2) Its creator's finish scope does not end before it is over: until its ticket has run the
//       ticket counts in the scope; from then on a hold does, if it is away.
//  (A3) A value comes at most once, and before the end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.hpp"

namespace amasia::nodes {

enum class AwayState : std::uint8_t {
  kOpen,   // flexible, here, and nobody has taken it yet
  kHere,   // its ticket does it
  kAway,   // another node has it; its ticket has not run
  kHeld,   // another node has it, and the creator's scope is held. Tasks for one node begin here
  kEnded,  // over elsewhere; its ticket has not run
  kOver,   // nothing refers to it any more
};
enum class AwayEvent : std::uint8_t {
  kTicket,  // its ticket runs
  kSteal,   // somebody wants it for another node
  kEnd,     // the node that has it says that it is over
};
enum class AwayAction : std::uint8_t {
  kNothing,  // it is not to be had
  kDo,       // the caller, its ticket, does it
  kSend,     // it goes to the other node
  kHold,     // the caller, its ticket, holds its scope
  kNote,     // an error of the end is kept for the ticket
  kFinish,   // what failed is told to the scope, which is let go
  kLeave,    // the ticket throws what was noted, if anything, and that was all
  kRefuse,   // the other node breaks the protocol
};
struct AwayStep {
  AwayState next;
  AwayAction action;
};
AwayStep step(AwayState state, AwayEvent event);

// Of a task's value, at its creator.
enum class ValueState : std::uint8_t { kNotWanted, kAwaited, kCame };
// Whether a message that has the value, the end, or both may come now; and the state after it.
// False: the sender breaks the protocol (A3).
bool accept(ValueState& state, bool has_value, bool has_end);

// What the node that did a task tells at once when the task itself has returned or thrown.
struct FirstAnswer {
  bool value;  // or the error in its place
  bool end;    // else the end follows when what the task has created is over
};
inline FirstAnswer first_answer(bool wants_value, bool all_is_over) {
  return {.value = wants_value, .end = all_is_over};
}

// Tasks that are away, by the number that goes along with each and comes back with the answers.
// Numbers of tasks that are over are not used again for 2^32 tasks in the same slot.
template <typename Task>
class AwayTasks {
 public:
  std::uint64_t add(Task* task) {
    AMASIA_CHECK(task != nullptr, "an empty slot is not a task");
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back({});
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[slot].task = task;
    return std::uint64_t{slots_[slot].generation} << 32 | slot;
  }
  // nullptr: there is no such task.
  Task* find(std::uint64_t number) const {
    const auto slot = static_cast<std::uint32_t>(number);
    if (slot >= slots_.size() || slots_[slot].generation != number >> 32) return nullptr;
    return slots_[slot].task;
  }
  void remove(std::uint64_t number) {
    AMASIA_CHECK(find(number) != nullptr, "a task that is away ends once");
    const auto slot = static_cast<std::uint32_t>(number);
    slots_[slot].task = nullptr;
    ++slots_[slot].generation;
    free_.push_back(slot);
  }
  std::size_t size() const { return slots_.size() - free_.size(); }

 private:
  struct Slot {
    Task* task = nullptr;
    std::uint32_t generation = 0;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace amasia::nodes
