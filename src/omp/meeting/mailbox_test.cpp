// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/mailbox.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "omp/team/affinity_format.hpp"

namespace amasia::omp {
namespace {

template <typename Head>
std::vector<std::byte> message(const Head& head, std::size_t tail) {
  const auto bytes = fabric::bytes_of(head);
  std::vector<std::byte> body(bytes.begin(), bytes.end());
  body.resize(body.size() + tail);
  return body;
}

RegionHead good_region() {
  RegionHead head{};
  head.region = 3;
  head.share_count = 2;
  head.word_count = 1;
  return head;
}
constexpr std::size_t kTail = 2 * sizeof(WireShare) + 8;

TEST(Mailbox, TakesARegionOnce) {
  Mailbox mailbox;
  EXPECT_TRUE(mailbox.put_region(message(good_region(), kTail)));
  EXPECT_TRUE(mailbox.has_region());
  EXPECT_FALSE(mailbox.put_region(message(good_region(), kTail)));  // M3
  mailbox.drop_region();
  EXPECT_TRUE(mailbox.put_region(message(good_region(), kTail)));
}

TEST(Mailbox, RefusesMalformedRegions) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.put_region({}));
  EXPECT_FALSE(mailbox.put_region(message(good_region(), kTail - 1)));
  EXPECT_FALSE(mailbox.put_region(message(good_region(), kTail + 1)));
  const auto refused = [&](auto change) {
    RegionHead head = good_region();
    change(head);
    const std::size_t tail = std::min<std::size_t>(head.share_count, 1000) * sizeof(WireShare) +
                             std::min<std::size_t>(head.word_count, 1000) * 8 +
                             std::min<std::size_t>(head.format_size, 1000) +
                             std::min<std::size_t>(head.extra_size, 1000);
    return !mailbox.put_region(message(head, tail));
  };
  EXPECT_TRUE(refused([](RegionHead& head) { head.region = 0; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.share_count = 1; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.share_count = base::kMaxNodes + 1; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.word_count = kMaxRegionWords + 1; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.extra_size = kMaxRegionExtra + 1; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.format_size = kMaxAffinityFormat + 1; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.abi = kAbis; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.reentry = 5; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.reentry = 3; }));
  EXPECT_TRUE(refused([](RegionHead& head) { head.numbered_threads = 8; }));
  EXPECT_FALSE(mailbox.has_region());
}

TEST(Mailbox, KeepsSignalsOfTwoGenerationsApart) {
  Mailbox mailbox;
  const auto put = [&](std::uint32_t generation, std::uint64_t word) {
    return mailbox.put_signal(message(SignalBody{1, generation, 2, 1, word}, 0));
  };
  EXPECT_TRUE(put(6, 60));
  EXPECT_TRUE(put(7, 70));
  EXPECT_TRUE(mailbox.has_signal(1, 6, 2));
  EXPECT_TRUE(mailbox.has_signal(1, 7, 2));
  EXPECT_FALSE(mailbox.has_signal(2, 6, 2));
  EXPECT_FALSE(mailbox.has_signal(1, 6, 1));
  EXPECT_EQ(mailbox.signal(6, 2), (Word{true, 60}));
  EXPECT_EQ(mailbox.signal(7, 2), (Word{true, 70}));
  EXPECT_FALSE(mailbox.put_signal(message(SignalBody{1, 0, kMaxRounds, 0, 0}, 0)));
  EXPECT_FALSE(mailbox.put_signal(message(SignalBody{1, 0, 0, 0, 0}, 1)));
}

TEST(Mailbox, ChecksAReductionsSize) {
  Mailbox mailbox;
  const ReductionHead head{1, 4, 2, 3, 0x1000, 64};
  EXPECT_FALSE(mailbox.put_reduction(message(head, 3 * 8 + 63)));
  EXPECT_FALSE(mailbox.put_reduction(message(ReductionHead{1, 4, 64, 0, 0, 0}, 0)));
  EXPECT_FALSE(mailbox.put_reduction(message(ReductionHead{1, 4, 2, 0, 0, ~std::uint64_t{0}}, 0)));
  EXPECT_TRUE(mailbox.put_reduction(message(head, 3 * 8 + 64)));
  EXPECT_TRUE(mailbox.has_reduction(2, 1, 4));
  EXPECT_FALSE(mailbox.has_reduction(2, 1, 5));
  EXPECT_FALSE(mailbox.has_reduction(1, 1, 4));
}

TEST(Mailbox, CountsTheJoinsOfTheRegionThatIsAwaited) {
  Mailbox mailbox;
  mailbox.expect_joins(9);
  EXPECT_FALSE(mailbox.put_joined(NodeId{1}, message(JoinedBody{8, 0, {.faults = 1}}, 0)));
  EXPECT_TRUE(mailbox.put_joined(NodeId{1}, message(JoinedBody{9, 0, {.faults = 5}}, 0)));
  EXPECT_TRUE(mailbox.put_joined(NodeId{3}, message(JoinedBody{9, 0, {.faults = 6}}, 0)));
  EXPECT_EQ(mailbox.joined(), 2u);
  for (const std::uint16_t id : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(mailbox.has_joined(NodeId{id}), id == 1 || id == 3) << id;
  }
  EXPECT_EQ(mailbox.joined_of(NodeId{1}).totals.faults, 5u);
  EXPECT_EQ(mailbox.joined_of(NodeId{3}).totals.faults, 6u);
  mailbox.expect_joins(10);
  EXPECT_EQ(mailbox.joined(), 0u);
}

TEST(Mailbox, KeepsWhatNodesHaveComputedSinceTheyWereAsked) {
  Mailbox mailbox;
  mailbox.expect_joins(9);
  EXPECT_FALSE(mailbox.put_work(NodeId{1}, message(WorkBody{8, 0, 70}, 0))) << "another region's";
  EXPECT_FALSE(mailbox.put_work(NodeId{1}, message(WorkBody{9, 0, 70}, 1)));
  mailbox.expect_work();
  EXPECT_TRUE(mailbox.put_work(NodeId{1}, message(WorkBody{9, 0, 70}, 0)));
  EXPECT_TRUE(mailbox.put_work(NodeId{2}, message(WorkBody{9, 0, 90}, 0)));
  EXPECT_EQ(mailbox.nodes_that_told_work(), 2u);
  EXPECT_EQ(mailbox.work_of(NodeId{2}), 90);
  mailbox.expect_work();
  EXPECT_EQ(mailbox.nodes_that_told_work(), 0u);
}

TEST(Mailbox, TakesTravellersOfTheRegionThatIsAwaited) {
  Mailbox mailbox;
  mailbox.expect_joins(9);
  EXPECT_FALSE(mailbox.put_travellers(NodeId{1}, message(TravellersHead{8, 1}, sizeof(Traveller))));
  EXPECT_FALSE(mailbox.put_travellers(NodeId{1}, message(TravellersHead{9, 0}, 0)));
  EXPECT_FALSE(mailbox.put_travellers(NodeId{1}, message(TravellersHead{9, 2}, sizeof(Traveller))));
  EXPECT_FALSE(
      mailbox.put_travellers(NodeId{1}, message(TravellersHead{9, 0xffffffff}, sizeof(Traveller))));
  EXPECT_EQ(mailbox.nodes_come_home(), 0u);
  EXPECT_TRUE(
      mailbox.put_travellers(NodeId{1}, message(TravellersHead{9, 3, {.number = 4, .threads = 2}},
                                                3 * sizeof(Traveller))));
  EXPECT_EQ(mailbox.nodes_come_home(), 1u);
  EXPECT_EQ(mailbox.rest_of(NodeId{1}).threads, 2u);
  EXPECT_EQ(mailbox.travellers_of(NodeId{1}).size(), 3u);
  mailbox.expect_joins(10);
  EXPECT_EQ(mailbox.nodes_come_home(), 0u);
}

TEST(Mailbox, TakesOneAskAtATime) {
  Mailbox mailbox;
  const AskValuesHead head{2, 0};
  EXPECT_FALSE(mailbox.put_ask({}));
  EXPECT_FALSE(mailbox.put_ask(message(head, 4)));
  EXPECT_FALSE(mailbox.put_ask(message(AskValuesHead{0, 0}, 0)));
  EXPECT_FALSE(mailbox.put_ask(message(AskValuesHead{kMaxThreadsAsked + 1, 0}, 8)));
  EXPECT_FALSE(mailbox.has_ask());
  EXPECT_TRUE(mailbox.put_ask(message(head, 8)));
  EXPECT_TRUE(mailbox.has_ask());
  EXPECT_EQ(mailbox.threads_asked().size(), 2u);
  EXPECT_FALSE(mailbox.put_ask(message(head, 8)));  // M4
  mailbox.drop_ask();
  EXPECT_TRUE(mailbox.put_ask(message(head, 8)));
}

TEST(Mailbox, GathersValuesUntilTheyAreTaken) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.put_values({}));
  EXPECT_FALSE(mailbox.put_values(message(ValuesHead{1, 0, 0}, 8))) << "nobody's";
  EXPECT_FALSE(mailbox.put_values(message(ValuesHead{1, 0, 64}, 0))) << "nothing";
  EXPECT_TRUE(mailbox.put_values(message(ValuesHead{1, 0, 0}, 0))) << "it has none";
  mailbox.drop_values();
  for (std::uint32_t round = 0; round < 2; ++round) {
    for (std::uint32_t thread = 0; thread < 3; ++thread) {
      EXPECT_EQ(mailbox.values_there(), thread);
      EXPECT_TRUE(mailbox.put_values(message(ValuesHead{thread, 0, 64}, 8 + round)));
    }
    EXPECT_EQ(mailbox.values(2).size(), sizeof(ValuesHead) + 8 + round);
    mailbox.drop_values();
  }
}

}  // namespace
}  // namespace amasia::omp
