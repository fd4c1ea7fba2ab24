// SPDX-License-Identifier: Apache-2.0
// Protocol messages on the wire. A frame holds several records, each one protocol message for a run
// of pages; at most the last one carries page contents, which follow all records:
//
//   FrameHeader | Record x record_count | page contents of the last record
//
// Records that do not carry pages are collected per destination and leave together; one that does
// ends its frame, so that contents go from the alias to the fabric without a copy in between.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dsm/address_space.hpp"
#include "dsm/protocol/single_writer.hpp"
#include "fabric/fabric.hpp"

namespace amasia::dsm {

inline constexpr fabric::MessageType kPageFrame = 0x100;
inline constexpr fabric::MessageType kTurnWish = 0x101;     // to the origin: TurnWish
inline constexpr fabric::MessageType kTurnStretch = 0x102;  // from it: protocol::Stretch
// To the node whose heap a page is in: StretchQuestion; and from it: StretchAnswer.
inline constexpr fabric::MessageType kStretchQuestion = 0x103;
inline constexpr fabric::MessageType kStretchAnswer = 0x104;
inline constexpr fabric::MessageType kFirstDsmType = 0x100;
inline constexpr fabric::MessageType kLastDsmType = 0x1ff;

// How long the sender wishes turns to be (protocol/turns.hpp).
struct TurnWish {
  Nanos length = 0;
};

// What a walk by the page may go through (heap/block_bounds.hpp). No pages: nothing tells.
struct StretchQuestion {
  std::uint64_t page = 0;
};
struct StretchAnswer {
  std::uint64_t page = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

inline constexpr std::size_t kMaxRecords = 63;
// Of one record with contents: 128 KiB, so that the receiver installs the first pages of a long run
// while the next ones travel.
inline constexpr PageCount kMaxPagesWithContents = 32;
// Of a record without.
inline constexpr PageCount kMaxPagesInRecord = 1 << 20;

struct Record {
  std::uint64_t first_page = 0;
  std::uint32_t page_count = 0;
  std::uint8_t kind = 0;       // protocol::MessageKind
  std::uint8_t requester = 0;  // of a fetch
  std::uint8_t all_zero = 0;   // 1: carries pages, which are zero and are not sent
  std::uint8_t reserved = 0;

  PageRun run() const { return {PageIndex{first_page}, page_count}; }
  protocol::MessageKind message() const { return static_cast<protocol::MessageKind>(kind); }
};
static_assert(sizeof(Record) == 16);

struct FrameHeader {
  std::uint32_t record_count = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(FrameHeader) == 8);

struct Frame {
  std::span<const Record> records;
  std::span<const std::byte> contents;  // of the last record, if it carries pages
};

// Checks everything that can be checked without page state: sizes, kinds, nodes, that runs lie in
// one segment, that requests are for pages whose home is this node, and offers for those of others.
// nullopt: refuse the sender.
// `body` must be aligned to 8 bytes and outlive the frame.
std::optional<Frame> decode_frame(std::span<const std::byte> body, const AddressSpace& space);

// Records on their way out, per destination. Guarded by the engine's lock.
class Outbox {
 public:
  Outbox(fabric::Fabric& fabric, const AddressSpace& space) : fabric_(fabric), space_(space) {}

  // Queues one message for `to`, another node. A record that continues the last one is joined to
  // it.
  void add(NodeId to, const Record& record);
  // The same with contents; sends all that is queued for `to`.
  void add_with_contents(NodeId to, Record record, std::span<const std::byte> contents);
  // Sends what is queued for all nodes.
  void flush();

  std::uint64_t frames_sent() const { return frames_sent_; }

 private:
  struct Lane {
    FrameHeader header;
    std::array<Record, kMaxRecords> records;
  };
  void send(NodeId to, std::span<const std::byte> contents);

  bool continues(const Record& last, const Record& next) const;

  fabric::Fabric& fabric_;
  const AddressSpace& space_;
  std::uint64_t dirty_ = 0;  // bit k: lane k holds records
  std::uint64_t frames_sent_ = 0;
  std::array<Lane, base::kMaxNodes> lanes_{};
};

}  // namespace amasia::dsm
