// SPDX-License-Identifier: Apache-2.0
// What the thread of run(), worker 0, does for modules besides tasks: calls that were handed to it,
// and polls.
//
//   field      written by          read by
//   calls_     any thread          worker 0, which takes all at once (E1)
//   polls_some_ worker 0           any thread
//   the rest   worker 0            worker 0
//
// (E1) Who posts orders its call after all that it posted before; a call that worker 0 makes itself
// comes after all that lie there, so that no task's calls overtake each other when it moves.
#pragma once

#include <atomic>
#include <vector>

#include "amasia/module.h"
#include "base/base.hpp"
#include "tasks/atomics.hpp"
#include "tasks/poll_pace.hpp"
#include "tasks/statistics.hpp"

namespace amasia::tasks::detail {

// Any number of threads add, one takes all, in the order in which they came.
template <typename Node, typename Atomics = RealAtomics>
class CallLine {
 public:
  void add(Node* node) {
    Node* head = head_.load(std::memory_order_relaxed);
    do {
      node->next = head;
      // Release: take_all()'s caller reads the node.
    } while (!head_.compare_exchange_weak(head, node, std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }
  Node* take_all() {
    Node* taken = nullptr;
    if (Atomics::has(Bug::kLineTakesInTwoSteps)) {
      taken = head_.load(std::memory_order_acquire);
      head_.store(nullptr, std::memory_order_seq_cst);
    } else {
      taken = head_.exchange(nullptr, std::memory_order_acquire);  // partner: add()
    }
    if (Atomics::has(Bug::kLineTakesNewestFirst)) return taken;
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
  typename Atomics::template Atomic<Node*> head_{nullptr};
};

class Errands {
 public:
  // Any thread; worker 0 is to be woken afterwards.
  void post(Call* call) { calls_.add(call); }
  bool has_calls() const { return !calls_.empty(); }

  // Worker 0. Before each task: costs a load while there is nothing to do.
  void attend_between_tasks() {
    if (has_calls() || !polled_.empty()) [[unlikely]]
      attend(false);
  }
  // Worker 0 has no task. True: something was done, and there may be tasks now.
  bool attend_without_tasks() { return (has_calls() || !polled_.empty()) && attend(true); }
  // How long it may sleep then, as PollPace::rest() says, and how often it polls before it asks
  // that; only while polls_any().
  Nanos rest();
  std::uint32_t polls_before_rest() const { return pace_.polls_before_rest(); }

  // A call that worker 0 makes itself. False: it must be posted, since calls are being made.
  bool begin_call();
  void end_call() { calling_ = false; }
  // Whether each call is timed, and not only counted. Before the first.
  void time_calls() { times_calls_ = true; }
  bool times_calls() const { return times_calls_; }

  void poll(module* of, ModuleCounts& counts);
  bool polls(const module* of) const;
  // Its last operation may have ended in a call, and not in the poll that would have noticed.
  void forget(const module* of) {
    std::erase_if(polled_, [&](const Polled& one) { return one.what == of; });
    note_polled();
  }
  bool polls_any() const { return !polled_.empty(); }
  // The same for any thread.
  bool polls_some() const { return polls_some_.load(std::memory_order_acquire); }

 private:
  bool attend(bool eagerly);
  bool make_calls();
  void note_polled() { polls_some_.store(!polled_.empty(), std::memory_order_release); }

  CallLine<Call> calls_;
  bool calling_ = false;
  bool times_calls_ = false;
  struct Polled {
    module* what;
    ModuleCounts* counts;
  };
  std::vector<Polled> polled_;
  std::atomic<bool> polls_some_{false};
  PollPace pace_;
};

}  // namespace amasia::tasks::detail
