// SPDX-License-Identifier: Apache-2.0
#include "dsm/page_message.hpp"

#include <bit>

namespace amasia::dsm {
namespace {

bool is_acceptable(const Record& record, const AddressSpace& space) {
  if (record.kind >= protocol::kMessageKinds || record.page_count == 0 ||
      record.page_count > kMaxPagesInRecord || record.requester >= space.node_count() ||
      record.all_zero > 1 || !space.is_valid(record.run())) {
    return false;
  }
  // The one never leaves its home, the other comes by on_given_back().
  if (record.message() == protocol::MessageKind::kTakeBack ||
      record.message() == protocol::MessageKind::kGivenBack) {
    return false;
  }
  const bool is_home = space.home_of(record.run().first) == space.self();
  if (protocol::carries_page(record.message())) {
    // Homes offer their pages to others.
    const bool is_own = is_home && record.message() == protocol::MessageKind::kDataOffered;
    return record.page_count <= kMaxPagesWithContents && !is_own;
  }
  return record.all_zero == 0 && (!protocol::is_for_home(record.message()) || is_home);
}

}  // namespace

std::optional<Frame> decode_frame(std::span<const std::byte> body, const AddressSpace& space) {
  if (body.size() < sizeof(FrameHeader)) return std::nullopt;
  const auto* const header = reinterpret_cast<const FrameHeader*>(body.data());
  const std::size_t count = header->record_count;
  if (count == 0 || count > kMaxRecords ||
      body.size() < sizeof(FrameHeader) + count * sizeof(Record)) {
    return std::nullopt;
  }
  const std::span<const Record> records(
      reinterpret_cast<const Record*>(body.data() + sizeof(FrameHeader)), count);
  Bytes expected = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Record& record = records[i];
    if (!is_acceptable(record, space)) return std::nullopt;
    if (protocol::carries_page(record.message())) {
      if (i + 1 != count) return std::nullopt;
      expected = record.all_zero != 0 ? 0 : record.page_count * base::kPageSize;
    }
  }
  const auto contents = body.subspan(sizeof(FrameHeader) + count * sizeof(Record));
  if (contents.size() != expected) return std::nullopt;
  return Frame{records, contents};
}

// Whether `next` says the same of the pages that follow those of `last`, in the same segment.
bool Outbox::continues(const Record& last, const Record& next) const {
  return last.kind == next.kind && last.requester == next.requester &&
         last.first_page + last.page_count == next.first_page &&
         last.page_count + next.page_count <= kMaxPagesInRecord &&
         space_.is_valid(PageRun{PageIndex{last.first_page}, last.page_count + next.page_count});
}

void Outbox::add(NodeId to, const Record& record) {
  Lane& lane = lanes_[to.value];
  const std::uint64_t bit = 1ULL << to.value;
  if ((dirty_ & bit) != 0) {
    Record& last = lane.records[lane.header.record_count - 1];
    if (continues(last, record)) {
      last.page_count += record.page_count;
      return;
    }
    if (lane.header.record_count == kMaxRecords) send(to, {});
  }
  lane.records[lane.header.record_count++] = record;
  dirty_ |= bit;
}

void Outbox::add_with_contents(NodeId to, Record record, std::span<const std::byte> contents) {
  AMASIA_CHECK_DEBUG(record.all_zero != 0 ? contents.empty()
                                          : contents.size() == record.page_count * base::kPageSize,
                     "contents that do not fit the run");
  Lane& lane = lanes_[to.value];
  if (lane.header.record_count == kMaxRecords) send(to, {});
  lane.records[lane.header.record_count++] = record;
  dirty_ |= 1ULL << to.value;
  send(to, contents);
}

void Outbox::flush() {
  while (dirty_ != 0) {
    send(NodeId{static_cast<NodeId::representation>(std::countr_zero(dirty_))}, {});
  }
}

void Outbox::send(NodeId to, std::span<const std::byte> contents) {
  Lane& lane = lanes_[to.value];
  const std::size_t size = sizeof(FrameHeader) + lane.header.record_count * sizeof(Record);
  // A lost peer ends the job through the fabric's own report; its messages may vanish.
  static_cast<void>(
      fabric_.send(to, kPageFrame, std::as_bytes(std::span(&lane, 1)).first(size), contents));
  ++frames_sent_;
  lane.header.record_count = 0;
  dirty_ &= ~(1ULL << to.value);
}

}  // namespace amasia::dsm
