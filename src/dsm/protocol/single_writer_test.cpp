// SPDX-License-Identifier: Apache-2.0
#include "dsm/protocol/single_writer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace amasia::dsm::protocol {
namespace {

constexpr NodeId kHome{0}, kOne{1}, kTwo{2};
constexpr CacheContext kAtHome{kHome, kHome}, kAtOne{kOne, kHome};

std::string text_of(const Effect& effect) {
  std::string text = name_of(effect.kind);
  if (effect.kind == EffectKind::kSend)
    text += std::string(" ") + name_of(effect.message) + " to " + std::to_string(effect.to) +
            " for " + std::to_string(effect.requester);
  return text;
}

template <typename Effects>
std::vector<std::string> texts_of(const Effects& effects) {
  std::vector<std::string> texts;
  for (const Effect& effect : effects) texts.push_back(text_of(effect));
  return texts;
}

std::vector<std::string> step(CachePage& page, const CacheContext& context,
                              const CacheEvent& event) {
  CacheEffects effects;
  step_cache(page, context, event, effects);
  EXPECT_TRUE(is_valid(page, context, 4));
  return texts_of(effects);
}

std::vector<std::string> step(DirectoryEntry& entry, MessageKind kind, NodeId from) {
  HomeEffects effects;
  step_home(entry, kHome, {kind, from}, effects);
  EXPECT_TRUE(is_valid(entry, kHome, base::kMaxNodes));
  return texts_of(effects);
}

using Texts = std::vector<std::string>;

TEST(SingleWriter, AllZeroIsOwnedByTheHomeAndInvalidElsewhere) {
  const CachePage page;
  EXPECT_EQ(page.state(true), CacheState::kExclusive);
  EXPECT_EQ(page.state(false), CacheState::kInvalid);
  EXPECT_TRUE(is_valid(page, kAtHome, 2));
  EXPECT_TRUE(is_valid(page, kAtOne, 2));
  const DirectoryEntry entry;
  EXPECT_EQ(entry.owner(kHome), kHome);
  EXPECT_EQ(entry.sharers, 0U);
  EXPECT_TRUE(is_valid(entry, kHome, 2));
}

TEST(SingleWriter, AReadProtectsAtTheOwnerBeforeItCopies) {
  CachePage home, one;
  DirectoryEntry entry;
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kReadFault}),
            (Texts{"Send ReadRequest to 0 for 1"}));
  EXPECT_EQ(step(entry, MessageKind::kReadRequest, kOne), (Texts{"Send FetchRead to 0 for 1"}));
  EXPECT_EQ(
      step(home, kAtHome, {CacheEventKind::kFetchRead, kOne}),
      (Texts{"Protect", "CopyOut", "Send DataShared to 1 for 1", "Send Downgraded to 0 for 0"}));
  EXPECT_EQ(step(entry, MessageKind::kDowngraded, kHome), Texts{});
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kDataShared}),
            (Texts{"CopyIn", "InstallRead", "Wake"}));
  EXPECT_TRUE(may_read(one, false));
  EXPECT_FALSE(may_write(one, false));
  EXPECT_FALSE(may_write(home, true));
}

TEST(SingleWriter, AnUpgradeCarriesNoPage) {
  CachePage one;
  DirectoryEntry entry;
  entry.sharers = 0b011;
  one.set_state(CacheState::kShared, false);
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kWriteFault}),
            (Texts{"Send UpgradeRequest to 0 for 1"}));
  EXPECT_EQ(step(entry, MessageKind::kUpgradeRequest, kOne), (Texts{"Send Invalidate to 0 for 1"}));
  EXPECT_EQ(step(entry, MessageKind::kInvalidateAck, kHome), (Texts{"Send Grant to 1 for 1"}));
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kGrant}), (Texts{"InstallWrite", "Wake"}));
}

TEST(SingleWriter, AHeldRevocationIsDoneOnRelease) {
  CachePage home;
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kFetchExclusive, kOne, true}),
            (Texts{"RevokePending"}));
  EXPECT_TRUE(may_write(home, true));
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kReleaseHold}),
            (Texts{"Unmap", "CopyOut", "Send DataExclusive to 1 for 1"}));
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kReleaseHold}), Texts{});
}

TEST(SingleWriter, AWriteFaultEndsTheHoldOfAReadCopy) {
  CachePage one;
  one.set_state(CacheState::kShared, false);
  step(one, kAtOne, {CacheEventKind::kInvalidate, kTwo, true});
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kWriteFault}),
            (Texts{"Unmap", "Send InvalidateAck to 0 for 1", "Send WriteRequest to 0 for 1"}));
}

TEST(SingleWriter, AStaleFaultMapsAndWakesAgain) {
  CachePage home;
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kWriteFault}), (Texts{"InstallWrite", "Wake"}));
  CachePage one;
  one.set_state(CacheState::kShared, false);
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kReadFault}), (Texts{"InstallRead", "Wake"}));
}

TEST(SingleWriter, AWriterThatMeetsAReaderOfAThirdNodeAwaitsDataAndGrant) {
  DirectoryEntry entry;
  entry.sharers = 0b110;  // nodes 1 and 2, of which 1 owned it last; the home has no copy
  entry.owner_code = 2;
  EXPECT_EQ(step(entry, MessageKind::kWriteRequest, kHome),
            (Texts{"Send FetchForGrant to 1 for 0", "Send Invalidate to 2 for 0"}));
  CachePage home;
  home.set_state(CacheState::kWritePending, true);
  CachePage other = home;
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kDataForGrant}), (Texts{"CopyIn"}));
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kGrant}), (Texts{"InstallWrite", "Wake"}));
  EXPECT_EQ(step(other, kAtHome, {CacheEventKind::kGrant}), Texts{});
  EXPECT_EQ(step(other, kAtHome, {CacheEventKind::kDataForGrant}),
            (Texts{"CopyIn", "InstallWrite", "Wake"}));
}

TEST(SingleWriter, AnEvictionOfAnOwnedPageGivesItToItsHome) {
  CachePage home, one;
  DirectoryEntry entry;
  entry.owner_code = 2;
  home.set_state(CacheState::kInvalid, true);
  one.set_state(CacheState::kExclusive, false);
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kEvict}), (Texts{"Send EvictRequest to 0 for 1"}));
  EXPECT_TRUE(may_write(one, false));
  EXPECT_EQ(step(entry, MessageKind::kEvictRequest, kOne), (Texts{"Send TakeBack to 0 for 0"}));
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kTakeBack}),
            (Texts{"Send WriteRequest to 0 for 0"}));
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kTakeBack}), Texts{});
  EXPECT_EQ(step(entry, MessageKind::kWriteRequest, kHome),
            (Texts{"Send FetchExclusive to 1 for 0"}));
}

TEST(SingleWriter, AReadCopyIsEvictedAloneWhereTheHomeHasOne) {
  CachePage one;
  DirectoryEntry entry;
  entry.sharers = 0b111;
  entry.owner_code = 2;
  one.set_state(CacheState::kShared, false);
  EXPECT_EQ(step(entry, MessageKind::kEvictRequest, kOne), (Texts{"Send Invalidate to 1 for 0"}));
  EXPECT_EQ(step(entry, MessageKind::kEvictRequest, kTwo), Texts{});  // busy: forgotten
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kInvalidate, kHome}),
            (Texts{"Unmap", "Send InvalidateAck to 0 for 1"}));
  EXPECT_EQ(step(entry, MessageKind::kInvalidateAck, kOne), Texts{});
  EXPECT_EQ(entry.sharers, 0b101U);
  EXPECT_EQ(entry.owner(kHome), kHome);
  step(entry, MessageKind::kEvictRequest, kTwo);
  step(entry, MessageKind::kInvalidateAck, kTwo);
  EXPECT_EQ(entry.sharers, 0b001U);
  DirectoryEntry other = entry;
  EXPECT_EQ(step(entry, MessageKind::kUpgradeRequest, kHome), (Texts{"Send Grant to 0 for 0"}));
  EXPECT_EQ(step(other, MessageKind::kWriteRequest, kTwo),
            (Texts{"Send FetchForGrant to 0 for 2", "Send Grant to 2 for 2"}));
}

TEST(SingleWriter, AnOfferedCopyIsGivenBackWithoutAsking) {
  CachePage home, one;
  DirectoryEntry entry;
  CacheEffects effects;
  EXPECT_TRUE(offer(entry, home, kHome, kOne, effects));
  EXPECT_EQ(texts_of(effects), (Texts{"Protect", "CopyOut", "Send DataOffered to 1 for 1"}));
  EXPECT_TRUE(is_valid(entry, kHome, 4));
  EXPECT_FALSE(offer(entry, home, kHome, kOne, effects)) << "it has one";
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kDataOffered}), (Texts{"CopyIn", "InstallRead"}));
  EXPECT_TRUE(may_read(one, false));
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kGiveBack}),
            (Texts{"Unmap", "Send GivenBack to 0 for 1"}));
  EXPECT_EQ(step(entry, MessageKind::kGivenBack, kOne), Texts{});
  EXPECT_EQ(step(home, kAtHome, {CacheEventKind::kWriteFault}),
            (Texts{"Send UpgradeRequest to 0 for 0"}));
  EXPECT_EQ(step(entry, MessageKind::kUpgradeRequest, kHome), (Texts{"Send Grant to 0 for 0"}));
}

TEST(SingleWriter, ARequestSaysThatAnOfferWasNotTaken) {
  CachePage home, one;
  DirectoryEntry entry;
  CacheEffects effects;
  step(one, kAtOne, {CacheEventKind::kReadFault});
  EXPECT_TRUE(offer(entry, home, kHome, kOne, effects));
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kDataOffered}), Texts{});
  EXPECT_EQ(step(entry, MessageKind::kReadRequest, kOne), (Texts{"Send FetchRead to 0 for 1"}));
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kDataShared}),
            (Texts{"CopyIn", "InstallRead", "Wake"}));
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kGiveBack}), Texts{}) << "it has asked for this one";
}

TEST(SingleWriter, AnOfferIsWithdrawnForAWriter) {
  CachePage home, one;
  DirectoryEntry entry;
  CacheEffects effects;
  EXPECT_TRUE(offer(entry, home, kHome, kOne, effects));
  step(one, kAtOne, {CacheEventKind::kDataOffered});
  step(one, kAtOne, {CacheEventKind::kGiveBack});
  EXPECT_EQ(step(entry, MessageKind::kUpgradeRequest, kHome), (Texts{"Send Withdraw to 1 for 0"}));
  EXPECT_EQ(step(entry, MessageKind::kGivenBack, kOne), Texts{}) << "the acknowledgement comes";
  EXPECT_EQ(step(one, kAtOne, {CacheEventKind::kWithdraw, kHome}),
            (Texts{"Send InvalidateAck to 0 for 1"}));
  EXPECT_EQ(step(entry, MessageKind::kInvalidateAck, kOne), (Texts{"Send Grant to 0 for 0"}));
}

TEST(SingleWriter, SixtyFourNodesFitIntoOneStep) {
  DirectoryEntry entry;
  entry.sharers = (std::uint64_t{1} << 31) - 1;  // the home and nodes 1 ... 30
  entry.busy = 1;
  entry.requester_id = 1;
  HomeEffects effects;
  step_home(entry, kHome, {MessageKind::kWriteRequest, NodeId{63}}, effects);
  for (std::uint16_t node = 31; node < 63; ++node)
    step_home(entry, kHome, {MessageKind::kReadRequest, NodeId{node}}, effects);
  EXPECT_TRUE(effects.empty());
  step_home(entry, kHome, {MessageKind::kDowngraded, kHome}, effects);
  EXPECT_EQ(effects.size(), 32U + 1 + 62);
  EXPECT_EQ(entry.pending_acks, (~std::uint64_t{0} >> 1) & ~std::uint64_t{1});
  effects.clear();
  for (std::uint16_t node = 1; node < 63; ++node)
    step_home(entry, kHome, {MessageKind::kInvalidateAck, NodeId{node}}, effects);
  EXPECT_EQ(texts_of(effects), (Texts{"Send Grant to 63 for 63"}));
  EXPECT_TRUE(is_valid(entry, kHome, 64));
}

// Waiting nodes are served in turn: a node that asks again at once cannot overtake one that waits.
TEST(SingleWriter, WaitingWritersAreServedInTurn) {
  DirectoryEntry entry;
  entry.sharers = 0b11;
  step(entry, MessageKind::kUpgradeRequest, kOne);
  for (std::uint16_t node : {5, 3, 63, 2}) step(entry, MessageKind::kWriteRequest, NodeId{node});
  EXPECT_EQ(step(entry, MessageKind::kInvalidateAck, kHome),
            (Texts{"Send Grant to 1 for 1", "Send FetchExclusive to 1 for 2",
                   "Send FetchExclusive to 2 for 3", "Send FetchExclusive to 3 for 5",
                   "Send FetchExclusive to 5 for 63"}));
  EXPECT_EQ(entry.owner(kHome), NodeId{63});
}

TEST(SingleWriter, ReadersOfASharedPageGoBeforeAWriter) {
  DirectoryEntry entry;
  step(entry, MessageKind::kReadRequest, kOne);
  step(entry, MessageKind::kWriteRequest, kTwo);
  step(entry, MessageKind::kReadRequest, NodeId{3});
  EXPECT_EQ(step(entry, MessageKind::kDowngraded, kHome),
            (Texts{"Send FetchRead to 0 for 3", "Send FetchForGrant to 0 for 2",
                   "Send Invalidate to 1 for 2", "Send Invalidate to 3 for 2"}));
}

// The cells of the table that are marked impossible. Rows and columns as in CacheState and
// CacheEventKind, messages only; TakeBack is for the home.
TEST(SingleWriterDeathTest, ImpossibleCellsAreChecked) {
  const char* const legal[kCacheStates] = {
      "......x ...x",  // Invalid
      "xx..... ...x",  // Exclusive
      "x.xx... ...x",  // Shared; a copy that was not offered
      "...x..x x..x",  // ReadPending
      "xx..x.x .xxx",  // WritePending
      "....x.. ...x",  // WritePendingData
      "xx..... ..xx",  // WritePendingGrant
      "x.xxx.x ...x",  // UpgradePending
  };
  int impossible = 0;
  for (std::size_t state = 0; state < kCacheStates; ++state)
    for (std::size_t event = 7; event < kCacheEventKinds; ++event) {
      const bool possible = legal[state][event - 7 + (event >= 14 ? 1 : 0)] == 'x';
      CachePage page;
      page.set_state(static_cast<CacheState>(state), false);
      const CacheEvent what{static_cast<CacheEventKind>(event), kTwo};
      CacheEffects effects;
      if (possible) {
        step_cache(page, kAtOne, what, effects);
        EXPECT_TRUE(is_valid(page, kAtOne, 3));
        continue;
      }
      ++impossible;
      EXPECT_DEATH(step_cache(page, kAtOne, what, effects), "check failed")
          << name_of(static_cast<CacheState>(state)) << " and " << name_of(what.kind);
    }
  EXPECT_EQ(impossible, 56);
}

TEST(SingleWriterDeathTest, TheHomeRefusesWhatNobodyCanSend) {
  DirectoryEntry entry;
  HomeEffects effects;
  EXPECT_DEATH(step_home(entry, kHome, {MessageKind::kInvalidateAck, kOne}, effects), "asked for");
  EXPECT_DEATH(step_home(entry, kHome, {MessageKind::kDowngraded, kOne}, effects), "asked for");
  EXPECT_DEATH(step_home(entry, kHome, {MessageKind::kReadRequest, kHome}, effects), "owner asks");
  entry.sharers = 0b11;
  EXPECT_DEATH(step_home(entry, kHome, {MessageKind::kWriteRequest, kOne}, effects), "sharer asks");
}

}  // namespace
}  // namespace amasia::dsm::protocol
