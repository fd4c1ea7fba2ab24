// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/meeting_board.hpp"

#include <algorithm>

#include "os/os.hpp"

namespace amasia::omp {

namespace {

// A bit for each core that a host can have.
using CoreSet = std::array<std::uint64_t, 16>;

}  // namespace

struct MeetingBoard::Part {
  // What others look at in a meeting is one line.
  struct alignas(64) Arrival {
    std::atomic<std::uint64_t> number;
    struct Given {
      std::atomic<std::uint64_t> number;
      std::atomic<std::uint64_t> word;
    };
    std::array<Given, 2> words;
  };
  static_assert(sizeof(Arrival) == 64);

  Arrival arrival;
  Bell bell;
  // Written by a node once a region, read by the origin.
  struct alignas(64) Joined {
    std::atomic<std::uint32_t> region;
    std::uint32_t given_back;
    NodeTotals totals;
  };
  static_assert(sizeof(Joined) == 64);
  Joined joined;
  alignas(64) std::atomic<std::uint64_t> reduction;
  std::atomic<std::uint32_t> reduction_size;
  // The message's size above the region's number, so that one line tells both.
  alignas(64) std::array<std::atomic<std::uint64_t>, base::kMaxNodes> region_for;
  alignas(64) std::array<std::atomic<std::uint64_t>, base::kMaxNodes> consumed_for;
  alignas(64) CoreSet cores;
  std::atomic<std::uint32_t> attends;
  alignas(base::kPageSize) std::array<std::byte, kPayloadSize> payload;
};

MeetingBoard::MeetingBoard(std::span<std::byte> memory, NodeId self)
    : memory_(memory), self_(self) {
  static_assert(sizeof(Part) <= kPartSize && kPartSize % base::kPageSize == 0);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
  AMASIA_CHECK(memory.size() == kSize, "the board has a part for each possible node");
  AMASIA_CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % base::kPageSize == 0,
               "the board begins with a page");
}

MeetingBoard::Part& MeetingBoard::part(NodeId node) const {
  AMASIA_CHECK_DEBUG(node.value < base::kMaxNodes, "the board has a part for each possible node");
  return *reinterpret_cast<Part*>(memory_.data() + node.value * kPartSize);
}

void MeetingBoard::attend(std::span<const int> cores) {
  CoreSet& set = part(self_).cores;
  for (const int core : cores) {
    const auto bit = static_cast<unsigned>(core);
    if (bit / 64 < set.size()) set[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
  part(self_).attends.store(1, std::memory_order_release);  // partner: look_around
}

void MeetingBoard::look_around(std::uint32_t node_count) {
  CoreSet used{};
  attending_ = 0;
  cores_shared_ = false;
  for (std::uint16_t id = 0; id < node_count; ++id) {
    const Part& other = part(NodeId{id});
    if (other.attends.load(std::memory_order_acquire) == 0) continue;
    attending_ |= std::uint64_t{1} << id;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if ((used[i] & other.cores[i]) != 0) cores_shared_ = true;
      used[i] |= other.cores[i];
    }
  }
  AMASIA_CHECK(has(self_), "who looks around attends");
}

Bell& MeetingBoard::bell() { return part(self_).bell; }

void MeetingBoard::ring(NodeId node) {
  Bell& bell = part(node).bell;
  bell.rung.fetch_add(1, std::memory_order_seq_cst);  // partner: BellWait::kReadBell
  os::futex_wake_shared(bell.rung, 1 << 30);
}

bool MeetingBoard::sleeps(NodeId node) const {
  return part(node).bell.sleepers.load(std::memory_order_seq_cst) != 0;  // partner: kMark
}

void MeetingBoard::ring_if_sleeping(NodeId node) {
  // A3: the post comes before the look.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeps(node)) ring(node);
}

void MeetingBoard::give(std::uint64_t number, std::uint64_t word) {
  auto& slot = part(self_).arrival.words[number % 2];
  slot.word.store(word, std::memory_order_relaxed);
  slot.number.store(number, std::memory_order_release);  // partner: word_of
}

void MeetingBoard::arrive(std::uint64_t number) {
  // An exchange, for it orders what follows too (A3); partner: has_arrived.
  part(self_).arrival.number.exchange(number, std::memory_order_seq_cst);
}

bool MeetingBoard::has_arrived(NodeId node, std::uint64_t number) const {
  return BoardMeeting::has_arrived(part(node).arrival.number.load(std::memory_order_seq_cst),
                                   number);
}

Word MeetingBoard::word_of(NodeId node, std::uint64_t number) const {
  const auto& slot = part(node).arrival.words[number % 2];
  if (slot.number.load(std::memory_order_acquire) != number) return {};
  return {true, slot.word.load(std::memory_order_relaxed)};
}

std::span<std::byte> MeetingBoard::own_payload() { return part(self_).payload; }

void MeetingBoard::post_region(NodeId to, std::uint32_t region, std::uint32_t size) {
  AMASIA_CHECK(self_ == base::kOrigin && size <= kPayloadSize, "the origin posts regions");
  // Partner: posted_region.
  part(self_).region_for[to.value].store(std::uint64_t{size} << 32 | region,
                                         std::memory_order_release);
}

std::uint32_t MeetingBoard::posted_region() const {
  // Sequentially consistent, as all looks of a BellWait.
  return static_cast<std::uint32_t>(
      part(base::kOrigin).region_for[self_.value].load(std::memory_order_seq_cst));
}

std::span<const std::byte> MeetingBoard::region_message() const {
  const Part& origin = part(base::kOrigin);
  const std::size_t size = origin.region_for[self_.value].load(std::memory_order_relaxed) >> 32;
  return {origin.payload.data(), std::min<std::size_t>(size, kPayloadSize)};
}

void MeetingBoard::post_joined(const JoinedBody& joined) {
  Part::Joined& own = part(self_).joined;
  own.totals = joined.totals;
  own.given_back = joined.given_back;
  own.region.store(joined.region, std::memory_order_release);  // partner: has_joined
}

bool MeetingBoard::has_joined(NodeId node, std::uint32_t region) const {
  return part(node).joined.region.load(std::memory_order_seq_cst) == region;
}

JoinedBody MeetingBoard::joined_of(NodeId node) const {
  const Part::Joined& joined = part(node).joined;
  return {joined.region.load(std::memory_order_relaxed), joined.given_back, joined.totals};
}

void MeetingBoard::post_reduction(std::uint64_t key, std::uint32_t size) {
  AMASIA_CHECK(size <= kPayloadSize, "what does not fit is sent");
  part(self_).reduction_size.store(size, std::memory_order_relaxed);
  part(self_).reduction.store(key, std::memory_order_release);  // partner: has_reduction
}

bool MeetingBoard::has_reduction(NodeId node, std::uint64_t key) const {
  return part(node).reduction.load(std::memory_order_seq_cst) == key;
}

std::span<std::byte> MeetingBoard::reduction(NodeId node) {
  Part& from = part(node);
  const std::size_t size = from.reduction_size.load(std::memory_order_relaxed);
  return {from.payload.data(), std::min<std::size_t>(size, kPayloadSize)};
}

void MeetingBoard::post_consumed(NodeId to, std::uint64_t key) {
  // Partner: has_consumed.
  part(self_).consumed_for[to.value].store(key, std::memory_order_release);
}

bool MeetingBoard::has_consumed(std::uint64_t key) const {
  return part(base::kOrigin).consumed_for[self_.value].load(std::memory_order_seq_cst) == key;
}

}  // namespace amasia::omp
