// SPDX-License-Identifier: Apache-2.0
// The word of a single assignment: waiters link themselves to it until it is set, once; who sets it
// gets them all. Node has a member `Node* next`, which is the list's while the node is linked.
//
//   state           add(node)            set()                  is_set()
//   list (or none)  linked, true         list taken, set (W1)   false
//   set             not linked, false    a bug of the caller    true
//
// (W1) Taking the list and marking the word is one step: a waiter is either in the list that was
// taken, or is told that the word is set.
// (W2) What was stored before set() is seen by who learns from is_set(), add() or a wake-up.
#pragma once

#include "base/base.hpp"
#include "tasks/atomics.hpp"

namespace amasia::tasks {

template <typename Node, typename Atomics = RealAtomics>
class WaiterList {
 public:
  bool is_set() const { return head_.load(std::memory_order_acquire) == set_mark(); }  // W2

  // Any thread. False: it is set, and the node was not touched for others to see.
  bool add(Node* node) {
    Node* head = head_.load(std::memory_order_acquire);
    do {
      if (head == set_mark() && !Atomics::has(Bug::kAddWithoutLooking)) return false;
      node->next = head;
      // Release: set()'s caller reads the node. Acquire on failure: W2.
    } while (!head_.compare_exchange_weak(head, node, std::memory_order_release,
                                          std::memory_order_acquire));
    return true;
  }

  // Any thread, once. The waiters in the order in which they came.
  Node* set() {
    Node* taken = nullptr;
    if (Atomics::has(Bug::kSetLeavesLateWaiters)) {
      taken = head_.load(std::memory_order_acquire);
      head_.store(set_mark(), std::memory_order_seq_cst);
    } else {
      taken = head_.exchange(set_mark(), std::memory_order_acq_rel);  // W1, W2
    }
    AMASIA_CHECK_DEBUG(taken != set_mark(), "a single assignment was made twice");
    Node* in_order = nullptr;
    while (taken != nullptr) {
      Node* const next = taken->next;
      taken->next = in_order;
      in_order = taken;
      taken = next;
    }
    return in_order;
  }

 private:
  static Node* set_mark() { return reinterpret_cast<Node*>(std::uintptr_t{1}); }
  typename Atomics::template Atomic<Node*> head_{nullptr};
};

}  // namespace amasia::tasks
