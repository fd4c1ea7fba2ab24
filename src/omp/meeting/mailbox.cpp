// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/mailbox.hpp"

#include <cstring>

#include "omp/team/affinity_format.hpp"

namespace amasia::omp {
namespace {

// The message's fixed part, or nothing when the body is shorter.
template <typename T>
bool read_head(std::span<const std::byte> body, T& head) {
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  return true;
}

}  // namespace

bool Mailbox::put_region(std::span<const std::byte> body) {
  RegionHead head;
  if (!read_head(body, head) || head.region == 0) return false;
  if (head.share_count < 2 || head.share_count > base::kMaxNodes) return false;
  if (head.abi >= kAbis) return false;
  if (head.reentry > static_cast<std::uint8_t>(Reentry::kAsks)) return false;
  const bool is_numbered = head.reentry == static_cast<std::uint8_t>(Reentry::kNumbered);
  if (is_numbered != (head.numbered_threads > 0)) return false;
  if (head.word_count > kMaxRegionWords || head.extra_size > kMaxRegionExtra) return false;
  if (head.format_size > kMaxAffinityFormat) return false;
  const std::size_t size = sizeof head + head.share_count * sizeof(WireShare) +
                           head.word_count * sizeof(std::uint64_t) + head.format_size +
                           head.extra_size;
  // M3: the slot is free, since the origin waits for this node's join.
  if (body.size() != size || region_there_.load(std::memory_order_acquire)) return false;
  region_.assign(body.begin(), body.end());
  region_there_.store(true, std::memory_order_release);  // partner: has_region
  return true;
}

bool Mailbox::put_joined(NodeId from, std::span<const std::byte> body) {
  JoinedBody joined;
  if (body.size() != sizeof joined || !read_head(body, joined)) return false;
  if (joined.region != join_region_.load(std::memory_order_acquire)) return false;
  joined_of_[from.value] = joined;
  const auto bit = std::uint64_t{1} << from.value;
  joined_.fetch_or(bit, std::memory_order_release);  // partner: joined, has_joined
  return true;
}

bool Mailbox::put_travellers(NodeId from, std::span<const std::byte> body) {
  TravellersHead head;
  if (!read_head(body, head) || head.count == 0) return false;
  if (body.size() != sizeof head + head.count * sizeof(Traveller)) return false;
  if (head.region != join_region_.load(std::memory_order_acquire)) return false;
  rest_of_[from.value] = head.rest;
  std::vector<Traveller>& travellers = travellers_of_[from.value];
  travellers.resize(head.count);
  std::memcpy(travellers.data(), body.data() + sizeof head, body.size() - sizeof head);
  come_home_.fetch_add(1, std::memory_order_release);  // partner: nodes_come_home
  return true;
}

bool Mailbox::put_work(NodeId from, std::span<const std::byte> body) {
  WorkBody work;
  if (body.size() != sizeof work || !read_head(body, work)) return false;
  if (work.region != join_region_.load(std::memory_order_acquire)) return false;
  work_of_[from.value] = work.computed;
  worked_.fetch_add(1, std::memory_order_release);  // partner: nodes_that_told_work
  return true;
}

bool Mailbox::put_signal(std::span<const std::byte> body) {
  SignalBody signal;
  if (body.size() != sizeof signal || !read_head(body, signal)) return false;
  if (signal.round >= kMaxRounds || signal.region == 0) return false;
  Signal& slot = signals_[signal.generation % 2][signal.round];
  slot.word = Word{signal.has_word != 0, signal.word};
  slot.key.store(key_of(signal.region, signal.generation),
                 std::memory_order_release);  // partner: has_signal
  return true;
}

bool Mailbox::is_well_formed_reduction(std::span<const std::byte> body) {
  ReductionHead head;
  if (!read_head(body, head) || head.region == 0 || head.rank >= base::kMaxNodes) return false;
  if (head.list_count > body.size() || head.window_size > body.size()) return false;
  return body.size() == sizeof head + head.list_count * sizeof(void*) + head.window_size;
}

bool Mailbox::put_reduction(std::span<const std::byte> body) {
  ReductionHead head;
  if (!is_well_formed_reduction(body) || !read_head(body, head)) return false;
  Arrived& slot = reductions_[head.rank];
  slot.bytes.assign(body.begin(), body.end());
  slot.key.store(key_of(head.region, head.number),
                 std::memory_order_release);  // partner: has_reduction
  return true;
}

bool Mailbox::put_consumed(std::span<const std::byte> body) {
  ConsumedBody consumed;
  if (body.size() != sizeof consumed || !read_head(body, consumed)) return false;
  consumed_.store(key_of(consumed.region, consumed.number),
                  std::memory_order_release);  // partner: has_consumed
  return true;
}

bool Mailbox::put_ask(std::span<const std::byte> body) {
  AskValuesHead head;
  if (!read_head(body, head) || head.count == 0 || head.count > kMaxThreadsAsked) return false;
  if (body.size() != sizeof head + head.count * sizeof(std::uint32_t)) return false;
  if (ask_there_.load(std::memory_order_acquire)) return false;  // M4
  asked_.resize(head.count);
  std::memcpy(asked_.data(), body.data() + sizeof head, body.size() - sizeof head);
  ask_there_.store(true, std::memory_order_release);  // partner: has_ask
  return true;
}

bool Mailbox::put_values(std::span<const std::byte> body) {
  ValuesHead head;
  if (!read_head(body, head) || (head.thread_pointer == 0) != (body.size() == sizeof head)) {
    return false;
  }
  // M4: the reader has dropped those before.
  const std::uint32_t there = values_there_.load(std::memory_order_acquire);
  if (there == kMaxThreadsAsked) return false;
  if (values_.size() <= there) values_.resize(there + 1);
  values_[there].assign(body.begin(), body.end());
  values_there_.store(there + 1, std::memory_order_release);  // partner: values_there
  return true;
}

bool Mailbox::has_signal(std::uint32_t region, std::uint32_t generation,
                         std::uint32_t round) const {
  return signals_[generation % 2][round].key.load(std::memory_order_acquire) ==
         key_of(region, generation);
}

Word Mailbox::signal(std::uint32_t generation, std::uint32_t round) const {
  return signals_[generation % 2][round].word;
}

bool Mailbox::has_reduction(std::uint32_t rank, std::uint32_t region, std::uint32_t number) const {
  return reductions_[rank].key.load(std::memory_order_acquire) == key_of(region, number);
}

std::span<const std::byte> Mailbox::reduction(std::uint32_t rank) const {
  return reductions_[rank].bytes;
}

bool Mailbox::has_consumed(std::uint32_t region, std::uint32_t number) const {
  return consumed_.load(std::memory_order_acquire) == key_of(region, number);
}

void Mailbox::expect_joins(std::uint32_t region) {
  joined_.store(0, std::memory_order_relaxed);
  come_home_.store(0, std::memory_order_relaxed);
  join_region_.store(region, std::memory_order_release);  // partner: put_joined
}

}  // namespace amasia::omp
