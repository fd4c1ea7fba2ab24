// SPDX-License-Identifier: Apache-2.0
// How thread-local variables follow their threads: docs/protocols/team.md.
#include <algorithm>
#include <cstring>

#include "omp/native.hpp"
#include "omp/node.hpp"

namespace amasia::omp {
namespace {

ValuesHead head_of(std::span<const std::byte> message) {
  ValuesHead head;
  std::memcpy(&head, message.data(), sizeof head);  // its size was checked on arrival
  return head;
}

ThreadValues::Packed values_in(std::span<const std::byte> message) {
  return {head_of(message).thread_pointer, message.subspan(sizeof(ValuesHead))};
}

}  // namespace

bool Node::owns_values() {
  if (!thread_values_.any() || self() != base::kOrigin) return false;
  const auto own = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  std::uintptr_t owner = 0;
  // Relaxed: only who the first one was matters.
  return values_owner_.compare_exchange_strong(owner, own, std::memory_order_relaxed) ||
         owner == own;
}

void Node::pack_thread_values() {
  if (owns_values()) on_native_stack([this] { thread_values_.begin(0, 1); });
}

// A region that stays has all its threads here, as many as the next runtime gives it.
void Node::bring_values_home(const RegionRequest& request, std::uint32_t threads,
                             RegionPlan& plan) {
  if (threads < 2 || !owns_values()) return;
  plan.values = KeptValues::kStay;
  const bool at_most = runtime(request.abi).dynamic();
  // Acquire and release, as in plan_region. While another initial thread's region runs, the other
  // nodes cannot answer: what they have is not found again by this region's threads.
  if (region_busy_.exchange(true, std::memory_order_acq_rel)) {
    return on_native_stack([&] { thread_values_.begin(0, threads, at_most); });
  }
  const NodeShare here{base::kOrigin, threads, 0};
  on_native_stack([&] { bring_values({&here, 1}, at_most); });
  region_busy_.store(false, std::memory_order_release);
}

void Node::bring_values(std::span<const NodeShare> shares, bool at_most) {
  values_sent_.fill(0);
  const std::span<const ThreadHomes::Move> moves = thread_homes_.follow(shares);
  for (const ThreadHomes::Move& move : moves) {
    if (move.from != self()) continue;
    const ThreadValues::Packed values = thread_values_.take(move.thread);
    if (!values.bytes.empty()) send_values(move.to, move.thread, values);
  }
  thread_values_.begin(0, shares[0].threads, at_most);
  thread_values_.make_room(shares.back().offset + shares.back().threads);
  ask_for_values(moves);
}

// Of threads that were on other nodes, each of which is asked for all of its own at once. What
// comes is kept here, or sent on.
void Node::ask_for_values(std::span<const ThreadHomes::Move> moves) {
  std::uint32_t asked = 0;
  for (std::uint16_t node = 1; node < node_count(); ++node) {
    std::vector<std::uint32_t> threads;
    for (const ThreadHomes::Move& move : moves) {
      if (move.from.value == node) threads.push_back(move.thread);
    }
    if (threads.empty()) continue;
    const AskValuesHead head{static_cast<std::uint32_t>(threads.size()), 0};
    send(NodeId{node}, kAskValuesMessage, fabric::bytes_of(head),
         std::as_bytes(std::span(threads)));
    asked += head.count;
  }
  if (asked == 0) return;
  wait_until([&] { return mailbox_.values_there() == asked; }, settings_.spin_in_region,
             "other nodes' thread-local variables");
  for (std::uint32_t i = 0; i < asked; ++i) {
    const std::span<const std::byte> message = mailbox_.values(i);
    const std::uint32_t thread = head_of(message).thread;
    const auto move = std::ranges::find(moves, thread, &ThreadHomes::Move::thread);
    AMASIA_CHECK(move != moves.end(), "nodes answer for the threads that they are asked for");
    if (values_in(message).bytes.empty()) continue;
    if (move->to == self()) {
      thread_values_.keep(thread, values_in(message));
    } else {
      send_values(move->to, thread, values_in(message));
    }
  }
  mailbox_.drop_values();
}

void Node::send_values(NodeId to, std::uint32_t thread, const ThreadValues::Packed& values) {
  const ValuesHead head{thread, 0, values.thread_pointer};
  ++values_sent_[to.value];
  send(to, kValuesMessage, fabric::bytes_of(head), values.bytes);
}

// On another node, between regions. Each is answered for, be it with nothing.
void Node::answer_ask() {
  const std::span<const std::uint32_t> asked = mailbox_.threads_asked();
  const std::vector<std::uint32_t> threads(asked.begin(), asked.end());
  mailbox_.drop_ask();  // the next one may follow the last answer
  for (const std::uint32_t thread : threads) {
    send_values(base::kOrigin, thread, thread_values_.take(thread));
  }
}

// On another node, as a region begins, before which `count` were sent here.
void Node::take_values(const NodeShare& own, std::uint32_t count) {
  thread_values_.begin(own.offset, own.threads);
  if (count == 0) return;
  wait_until([&] { return mailbox_.values_there() == count; }, settings_.spin_in_region,
             "thread-local variables from the origin", base::kOrigin.value);
  keep_values(count, [&own](std::uint32_t thread) {
    return thread >= own.offset && thread - own.offset < own.threads;
  });
}

void Node::send_values_home(std::uint32_t thread) {
  const auto from = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  const ValuesHead head{thread, 0, from};
  send(base::kOrigin, kValuesMessage, fabric::bytes_of(head), thread_values_.leave(thread));
}

void Node::take_values_home(std::span<const Traveller> travellers) {
  const auto count = static_cast<std::uint32_t>(travellers.size());
  wait_until([&] { return mailbox_.values_there() == count; }, settings_.spin_in_region,
             "thread-local variables of threads that come home");
  for (const Traveller& traveller : travellers) {
    thread_homes_.come_home(traveller.thread.global_id);
  }
  keep_values(count, [travellers](std::uint32_t thread) {
    return std::ranges::any_of(travellers, [thread](const Traveller& traveller) {
      return traveller.thread.global_id == thread;
    });
  });
}

// So many have come, each of a thread that is_expected(number).
template <typename IsExpected>
void Node::keep_values(std::uint32_t count, IsExpected is_expected) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::span<const std::byte> message = mailbox_.values(i);
    const std::uint32_t thread = head_of(message).thread;
    const ThreadValues::Packed values = values_in(message);
    if (values.bytes.empty() || !is_expected(thread)) {
      services_.abort_job(fmt::format("node {} was sent variables of thread {}, which is none of "
                                      "those that come to it, or has none",
                                      self().value, thread));
    }
    thread_values_.keep(thread, values);
  }
  mailbox_.drop_values();
}

}  // namespace amasia::omp
