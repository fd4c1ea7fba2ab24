// SPDX-License-Identifier: Apache-2.0
// Where a node's handler leaves what messages say, and leaders find it. Lock-free, because a leader
// may be stopped by a page fault at any instruction, and the handler must not wait for that.
//
// Every slot has one writer (the handler; one runs at a time) and one reader (a leader). The writer
// fills the data and then releases the key; the reader acquires the key and then reads the data. A
// slot is written again only after the reader has let the sender go on:
//  M1 signal: a sender can be at most one meeting ahead, so two slots a round suffice;
//  M2 reduction: its sender waits until the origin has consumed it;
//  M3 region: the origin sends the next one after this node has joined.
//  M4 values: between regions the origin takes what it has asked for before it asks again, and a
//     node what has come for a region before that begins; in one they come with travellers (M6).
//  M5 work: once for each question, which the origin asks after all have answered the last one.
//  M6 travellers: once a region, from a node that then joins it; the origin has read them before.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "omp/meeting/meeting.hpp"
#include "omp/meeting/team_messages.hpp"

namespace amasia::omp {

// Names one meeting, reduction, …: never 0, since regions are numbered from 1.
constexpr std::uint64_t key_of(std::uint32_t region, std::uint32_t number) {
  return (static_cast<std::uint64_t>(region) << 32) | number;
}

class Mailbox {
 public:
  // Handler side. False: the message is malformed or out of place.
  bool put_region(std::span<const std::byte> body);
  bool put_joined(NodeId from, std::span<const std::byte> body);
  bool put_signal(std::span<const std::byte> body);
  bool put_reduction(std::span<const std::byte> body);
  bool put_consumed(std::span<const std::byte> body);
  bool put_ask(std::span<const std::byte> body);
  bool put_values(std::span<const std::byte> body);
  bool put_work(NodeId from, std::span<const std::byte> body);
  bool put_travellers(NodeId from, std::span<const std::byte> body);
  // Whether its parts are as long as its head says.
  static bool is_well_formed_reduction(std::span<const std::byte> body);
  void put_serve_end() { serve_end_.store(true, std::memory_order_release); }

  // Leader side; each acquires what the handler released.
  bool has_region() const { return region_there_.load(std::memory_order_acquire); }
  bool has_serve_end() const { return serve_end_.load(std::memory_order_acquire); }
  // The region's message; valid until drop_region().
  std::span<const std::byte> region() const { return region_; }
  void drop_region() { region_there_.store(false, std::memory_order_release); }

  bool has_signal(std::uint32_t region, std::uint32_t generation, std::uint32_t round) const;
  Word signal(std::uint32_t generation, std::uint32_t round) const;

  bool has_reduction(std::uint32_t rank, std::uint32_t region, std::uint32_t number) const;
  // The message of `rank`, 64-byte aligned storage; valid until its sender is let go.
  std::span<const std::byte> reduction(std::uint32_t rank) const;
  bool has_consumed(std::uint32_t region, std::uint32_t number) const;

  // Whether the origin asks for variables of threads; whose, until drop_ask().
  bool has_ask() const { return ask_there_.load(std::memory_order_acquire); }
  std::span<const std::uint32_t> threads_asked() const { return asked_; }
  void drop_ask() { ask_there_.store(false, std::memory_order_release); }
  // Messages with variables that have come; each is a ValuesHead and what follows it, until
  // drop_values().
  std::uint32_t values_there() const { return values_there_.load(std::memory_order_acquire); }
  std::span<const std::byte> values(std::uint32_t index) const { return values_[index]; }
  void drop_values() { values_there_.store(0, std::memory_order_release); }

  // Origin: begin to count joins of a region, before its messages go out.
  void expect_joins(std::uint32_t region);
  std::uint32_t joined() const {
    return static_cast<std::uint32_t>(std::popcount(joined_.load(std::memory_order_acquire)));
  }
  bool has_joined(NodeId node) const {
    return (joined_.load(std::memory_order_acquire) >> node.value & 1) != 0;
  }
  // Of a node that has been counted.
  const JoinedBody& joined_of(NodeId node) const { return joined_of_[node.value]; }
  // Origin, before it asks the others what they have done in this region; how many have told since;
  // and what one of them has: how long it has computed.
  void expect_work() { worked_.store(0, std::memory_order_relaxed); }
  std::uint32_t nodes_that_told_work() const { return worked_.load(std::memory_order_acquire); }
  Nanos work_of(NodeId node) const { return work_of_[node.value]; }
  // Origin: how many nodes' threads have come home in this region, and those of one of them.
  std::uint32_t nodes_come_home() const { return come_home_.load(std::memory_order_acquire); }
  std::span<const Traveller> travellers_of(NodeId node) const {
    return travellers_of_[node.value];
  }
  const LoopRest& rest_of(NodeId node) const { return rest_of_[node.value]; }

 private:
  struct Signal {
    std::atomic<std::uint64_t> key{0};
    Word word;
  };
  struct Arrived {
    std::atomic<std::uint64_t> key{0};
    std::vector<std::byte> bytes;
  };

  std::atomic<bool> region_there_{false};
  std::vector<std::byte> region_;
  std::atomic<bool> serve_end_{false};
  std::array<std::array<Signal, kMaxRounds>, 2> signals_;
  std::array<Arrived, base::kMaxNodes> reductions_;
  std::atomic<std::uint64_t> consumed_{0};
  std::atomic<bool> ask_there_{false};
  std::vector<std::uint32_t> asked_;
  std::atomic<std::uint32_t> values_there_{0};
  std::vector<std::vector<std::byte>> values_;  // kept for their memory
  std::atomic<std::uint32_t> join_region_{0};
  static_assert(base::kMaxNodes <= 64);
  std::atomic<std::uint64_t> joined_{0};  // a bit for each node
  // Written by the handler before joined_, read when all have come.
  std::array<JoinedBody, base::kMaxNodes> joined_of_{};
  std::atomic<std::uint32_t> worked_{0};
  std::array<Nanos, base::kMaxNodes> work_of_{};  // the same before worked_
  std::atomic<std::uint32_t> come_home_{0};
  // The same before come_home_.
  std::array<std::vector<Traveller>, base::kMaxNodes> travellers_of_;
  std::array<LoopRest, base::kMaxNodes> rest_of_;
};

}  // namespace amasia::omp
