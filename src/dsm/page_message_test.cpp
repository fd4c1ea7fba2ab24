// SPDX-License-Identifier: Apache-2.0
// What another node sends is checked before it is believed.
#include "dsm/page_message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace amasia::dsm {
namespace {

using protocol::MessageKind;

constexpr NodeId kSelf{1};

// The second of two nodes, and a page of each one's heap.
class PageMessage : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(space_
                    .map({.self = kSelf,
                          .node_count = 2,
                          .base = kManagedBase,
                          .span = 4 * base::kGiB,
                          .globals_span = base::kGiB})
                    .ok());
    own_ = page_at(2 * base::kGiB);
    others_ = page_at(0);
    ASSERT_EQ(space_.home_of(PageIndex{own_}), kSelf);
    ASSERT_EQ(space_.home_of(PageIndex{others_}), base::kOrigin);
  }
  void TearDown() override { space_.release(); }

  std::uint64_t page_at(Bytes offset) const {
    return space_.page_of(reinterpret_cast<const void*>(kManagedBase + offset))->value;
  }
  static Record record(MessageKind kind, std::uint64_t page, std::uint32_t count = 1) {
    return {.first_page = page, .page_count = count, .kind = static_cast<std::uint8_t>(kind)};
  }
  static std::vector<std::byte> frame_of(const std::vector<Record>& records, Bytes contents = 0) {
    std::vector<std::byte> body(sizeof(FrameHeader) + records.size() * sizeof(Record) + contents);
    const FrameHeader header{.record_count = static_cast<std::uint32_t>(records.size())};
    std::memcpy(body.data(), &header, sizeof header);
    std::memcpy(body.data() + sizeof header, records.data(), records.size() * sizeof(Record));
    return body;
  }
  bool accepts(const std::vector<Record>& records, Bytes contents = 0) const {
    return decode_frame(frame_of(records, contents), space_).has_value();
  }

  AddressSpace space_;
  std::uint64_t own_ = 0, others_ = 0;
};

TEST_F(PageMessage, WhatIsRightIsRead) {
  const auto body = frame_of({record(MessageKind::kReadRequest, own_, 3),
                              record(MessageKind::kInvalidate, others_),
                              record(MessageKind::kDataShared, others_ + 1, 2)},
                             2 * base::kPageSize);
  const auto frame = decode_frame(body, space_);
  ASSERT_TRUE(frame.has_value());
  ASSERT_EQ(frame->records.size(), 3u);
  EXPECT_EQ(frame->records[0].message(), MessageKind::kReadRequest);
  EXPECT_EQ(frame->records[0].run(), (PageRun{PageIndex{own_}, 3}));
  EXPECT_EQ(frame->contents.size(), 2 * base::kPageSize);
}

TEST_F(PageMessage, RequestsAreForTheHomeAndOffersForOthers) {
  EXPECT_TRUE(accepts({record(MessageKind::kWriteRequest, own_)}));
  EXPECT_FALSE(accepts({record(MessageKind::kWriteRequest, others_)}));
  EXPECT_TRUE(accepts({record(MessageKind::kDataOffered, others_)}, base::kPageSize));
  EXPECT_FALSE(accepts({record(MessageKind::kDataOffered, own_)}, base::kPageSize));
  // The home's own cache gets data, too.
  EXPECT_TRUE(accepts({record(MessageKind::kDataShared, own_)}, base::kPageSize));
}

TEST_F(PageMessage, WhatNoNodeSendsIsRefused) {
  const Record good = record(MessageKind::kInvalidate, others_);
  ASSERT_TRUE(accepts({good}));
  Record bad = good;
  bad.kind = protocol::kMessageKinds;
  EXPECT_FALSE(accepts({bad}));
  bad = good;
  bad.requester = 2;
  EXPECT_FALSE(accepts({bad})) << "there are two nodes";
  EXPECT_FALSE(accepts({record(MessageKind::kInvalidate, others_, 0)}));
  EXPECT_FALSE(accepts({record(MessageKind::kInvalidate, others_, kMaxPagesInRecord + 1)}));
  EXPECT_FALSE(accepts({record(MessageKind::kInvalidate, ~std::uint64_t{0})}));
  EXPECT_FALSE(accepts({record(MessageKind::kTakeBack, others_)})) << "never leaves its home";
  EXPECT_FALSE(accepts({})) << "a frame says something";
  EXPECT_FALSE(accepts({good}, base::kPageSize)) << "contents of nothing";
  const Record data = record(MessageKind::kDataShared, others_);
  EXPECT_FALSE(accepts({data}));
  EXPECT_FALSE(accepts({data}, base::kPageSize - 1));
  EXPECT_FALSE(accepts({data, good}, base::kPageSize)) << "data come last";
  const auto many = record(MessageKind::kDataShared, others_, kMaxPagesWithContents + 1);
  EXPECT_FALSE(accepts({many}, many.page_count * base::kPageSize));
  auto cut = frame_of({good});
  cut.pop_back();
  EXPECT_FALSE(decode_frame(cut, space_).has_value());
}

// Whatever comes: what is accepted names pages that there are, and no more contents than came.
TEST_F(PageMessage, RubbishNamesNoPageThatThereIsNot) {
  std::mt19937_64 random(1);
  const auto good = frame_of({record(MessageKind::kReadRequest, own_, 2),
                              record(MessageKind::kDataShared, others_)},
                             base::kPageSize);
  int accepted = 0;
  constexpr std::size_t kHead = sizeof(FrameHeader) + 2 * sizeof(Record);
  for (int n = 0; n < 200'000; ++n) {
    auto body = good;
    for (auto changes = random() % 4; changes > 0; --changes) {
      body[random() % kHead] = static_cast<std::byte>(random());
    }
    if (random() % 8 == 0) body.resize(random() % (body.size() + 1));
    const auto frame = decode_frame(body, space_);
    if (!frame.has_value()) continue;
    ++accepted;
    for (const Record& one : frame->records) {
      ASSERT_TRUE(space_.is_valid(one.run()));
      ASSERT_LT(one.kind, protocol::kMessageKinds);
      ASSERT_LT(one.requester, 2);
    }
    const Record& last = frame->records.back();
    const bool carries = protocol::carries_page(last.message()) && last.all_zero == 0;
    ASSERT_EQ(frame->contents.size(), carries ? last.page_count * base::kPageSize : 0);
  }
  EXPECT_GT(accepted, 10'000);
  EXPECT_LT(accepted, 190'000);
}

}  // namespace
}  // namespace amasia::dsm
