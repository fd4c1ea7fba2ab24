// SPDX-License-Identifier: Apache-2.0
// Errors that a protocol like this one can have, planted around the real steps: the explorer must
// catch each, or it proves nothing. They change events before a step, or effects and state after
// it, so that the product carries no trace of them. For tests only.
#pragma once

#include <cstdint>

#include "dsm/protocol/single_writer.hpp"

namespace amasia::dsm::protocol {

enum class Bug : std::uint8_t {
  kNone,
  kCopyBeforeRevoke,        // the page is read before it is protected or unmapped
  kAckBeforeUnmap,          // the acknowledgement goes out before the copy is gone
  kNoProtect,               // the owner goes on writing after having given a read copy
  kNoUnmap,                 // an invalidated copy stays mapped
  kInstallBeforeCopyIn,     // the page is mapped before its bytes are there
  kReadCopyWritable,        // a read copy is mapped writable
  kNoWake,                  // an installation wakes nobody
  kStaleFaultIgnored,       // a fault on a page that is there is answered by nothing
  kDataIsGrant,             // a writer does not wait for the grant
  kGrantIsData,             // a writer does not wait for the data
  kGrantBeforeAcks,         // the home grants when it has sent the invalidations
  kSharerForgotten,         // the home invalidates all sharers but one
  kReaderNotRecorded,       // the home does not note the reader as a sharer
  kUpgradeWithoutCopy,      // an upgrade that was overtaken is granted without data
  kIdleDuringDowngrade,     // the home serves the next request before the owner has become a sharer
  kIdleDuringOwnRead,       // the home serves others from a copy that it does not have yet
  kWaitingNotServed,        // the home forgets who waits when it becomes idle
  kEarlyInvalidateDropped,  // an invalidation that overtakes the data is acknowledged and forgotten
  kUpgradeKeepsCopy,        // a node that waits for an upgrade ignores invalidations
  kUpgradeHolds,            // a write fault on a held read copy asks for more and keeps holding
  kHeldForgotten,           // what is held is never done
  kPendingLost,             // a revocation that came before the data is forgotten
  kOwnerNotChanged,         // the home forgets to whom the page was handed
  kConfirmationMissing,     // the owner does not confirm
  kChannelReorders,         // the fabric breaks its promise
  kEvictsAtOnce,            // a node drops its copy when it asks, not when the home takes it
  kEvictionNotAwaited,      // the home forgets a sharer before its copy is gone
  kSupplierEvicted,         // the last owner's copy goes though the home has none
  kEvictedStaysOwner,       // the home goes on asking the evicted node for the page
  kTakesBackTwice,          // the home asks for a page that it has asked for
  kSoleSharerGetsNoData,    // a writer of a page that only the home shares is granted no data
  kEvictsTheNewOwner,       // the home revokes the copy of a node that owns the page
  kOfferTakenWhileAsking,   // a node takes an offer though its request is under way
  kWithdrawnCopyStays,      // a copy that was offered stays mapped when it is withdrawn
  kGivenBackLate,           // the home forgets a sharer by what came before it was one
  kGivesBackUsedCopy,       // a node drops a copy by itself that it has asked for
  kOffersBeforeReturn,      // a page is offered again while the home has yet to hear of its return
  kCount,
};

const char* name_of(Bug bug);

// Keeps the effects that `keep` names.
inline void keep_effects(CacheEffects& effects, bool (*keep)(const Effect&)) {
  CacheEffects kept;
  for (const Effect& effect : effects)
    if (keep(effect)) kept.push(effect);
  effects = kept;
}

inline void swap_effects(CacheEffects& effects, EffectKind first, EffectKind second) {
  for (std::size_t i = 0; i + 1 < effects.size(); ++i)
    if (effects[i].kind == first && effects[i + 1].kind == second) {
      const Effect effect = effects[i];
      effects[i] = effects[i + 1];
      effects[i + 1] = effect;
      return;
    }
}

inline bool sends(const Effect& effect, MessageKind message) {
  return effect.kind == EffectKind::kSend && effect.message == message;
}

inline void mutate_cache_event(Bug bug, const CachePage& page, const CacheContext& context,
                               CacheEvent& event) {
  const bool write_pending = page.state(context.self == context.home) == CacheState::kWritePending;
  if (bug == Bug::kDataIsGrant && event.kind == CacheEventKind::kDataForGrant && write_pending)
    event.kind = CacheEventKind::kDataExclusive;
}

inline void mutate_effects(Bug bug, CacheState before, const CacheEvent& event,
                           CacheEffects& effects) {
  const bool fault =
      event.kind == CacheEventKind::kReadFault || event.kind == CacheEventKind::kWriteFault;
  switch (bug) {
    case Bug::kCopyBeforeRevoke:
      swap_effects(effects, EffectKind::kProtect, EffectKind::kCopyOut);
      return swap_effects(effects, EffectKind::kUnmap, EffectKind::kCopyOut);
    case Bug::kAckBeforeUnmap:
      if (event.kind == CacheEventKind::kInvalidate)
        swap_effects(effects, EffectKind::kUnmap, EffectKind::kSend);
      return;
    case Bug::kWithdrawnCopyStays:
      if (event.kind == CacheEventKind::kWithdraw)
        keep_effects(effects, [](const Effect& e) { return e.kind != EffectKind::kUnmap; });
      return;
    case Bug::kNoProtect:
      return keep_effects(effects, [](const Effect& e) { return e.kind != EffectKind::kProtect; });
    case Bug::kNoUnmap:
      if (event.kind == CacheEventKind::kInvalidate)
        keep_effects(effects, [](const Effect& e) { return e.kind != EffectKind::kUnmap; });
      return;
    case Bug::kInstallBeforeCopyIn:
      swap_effects(effects, EffectKind::kCopyIn, EffectKind::kInstallRead);
      return swap_effects(effects, EffectKind::kCopyIn, EffectKind::kInstallWrite);
    case Bug::kReadCopyWritable:
      for (std::size_t i = 0; i < effects.size(); ++i)
        if (effects[i].kind == EffectKind::kInstallRead)
          effects[i].kind = EffectKind::kInstallWrite;
      return;
    case Bug::kNoWake:
      return keep_effects(effects, [](const Effect& e) { return e.kind != EffectKind::kWake; });
    case Bug::kStaleFaultIgnored:
      if (fault && before != CacheState::kInvalid)
        keep_effects(effects, [](const Effect& e) { return e.kind == EffectKind::kSend; });
      return;
    case Bug::kConfirmationMissing:
      return keep_effects(effects,
                          [](const Effect& e) { return !sends(e, MessageKind::kDowngraded); });
    default:
      return;
  }
}

inline void mutate_cache_step(Bug bug, const CachePage& before, const CacheContext& context,
                              const CacheEvent& event, CachePage& page, CacheEffects& effects) {
  const bool is_home = context.self == context.home;
  const CacheState from = before.state(is_home), to = page.state(is_home);
  mutate_effects(bug, from, event, effects);
  const auto home = static_cast<std::uint8_t>(context.home.value);
  const auto self = static_cast<std::uint8_t>(context.self.value);
  if (bug == Bug::kGrantIsData && to == CacheState::kWritePendingGrant) {
    page.set_state(CacheState::kExclusive, is_home);
    effects.push({EffectKind::kInstallWrite});
    effects.push({EffectKind::kWake});
  }
  if (bug == Bug::kEarlyInvalidateDropped && from == CacheState::kReadPending &&
      event.kind == CacheEventKind::kInvalidate) {
    page = before;
    effects.push({EffectKind::kSend, MessageKind::kInvalidateAck, home, self});
  }
  if (bug == Bug::kUpgradeKeepsCopy && from == CacheState::kUpgradePending &&
      event.kind == CacheEventKind::kInvalidate) {
    page = before;
    keep_effects(effects, [](const Effect& e) { return e.kind != EffectKind::kUnmap; });
  }
  if (bug == Bug::kUpgradeHolds && before.has_pending() && from == CacheState::kShared &&
      event.kind == CacheEventKind::kWriteFault) {
    page = before;
    page.set_state(CacheState::kUpgradePending, is_home);
    effects.clear();
    effects.push({EffectKind::kSend, MessageKind::kUpgradeRequest, home, self});
  }
  if (bug == Bug::kOfferTakenWhileAsking && from == CacheState::kReadPending &&
      event.kind == CacheEventKind::kDataOffered) {
    page.set_state(CacheState::kShared, is_home);
    effects.push({EffectKind::kCopyIn});
    effects.push({EffectKind::kInstallRead});
    effects.push({EffectKind::kWake});
  }
  if (bug == Bug::kGivesBackUsedCopy && from == CacheState::kShared &&
      event.kind == CacheEventKind::kGiveBack) {
    page.set_state(CacheState::kInvalid, is_home);
    page.offered = 0;
    effects.clear();
    effects.push({EffectKind::kUnmap});
    effects.push({EffectKind::kSend, MessageKind::kGivenBack, home, self});
  }
  if (bug == Bug::kHeldForgotten && event.kind == CacheEventKind::kReleaseHold) {
    page = before;
    effects.clear();
  }
  if (bug == Bug::kEvictsAtOnce && event.kind == CacheEventKind::kEvict && !effects.empty()) {
    page.set_state(CacheState::kInvalid, is_home);
    effects.clear();
    effects.push({EffectKind::kUnmap});
    effects.push({EffectKind::kSend, MessageKind::kEvictRequest, home, self});
  }
  if (bug == Bug::kTakesBackTwice && event.kind == CacheEventKind::kTakeBack && effects.empty()) {
    page.set_state(CacheState::kWritePending, is_home);
    effects.push({EffectKind::kSend, MessageKind::kWriteRequest, home, self});
  }
  if (bug == Bug::kPendingLost && event.kind >= CacheEventKind::kDataShared)
    page.pending_code = page.pending_requester = 0;
}

inline void mutate_home_event(Bug bug, const HomeEvent& event, DirectoryEntry& entry) {
  if (bug == Bug::kUpgradeWithoutCopy && event.kind == MessageKind::kUpgradeRequest &&
      entry.sharers != 0)
    entry.sharers |= std::uint64_t{1} << event.from.value;
}

// One of several that are to be invalidated.
inline void forget_sharer(DirectoryEntry& entry, HomeEffects& effects) {
  if ((entry.pending_acks & (entry.pending_acks - 1)) == 0) return;
  HomeEffects changed;
  for (const Effect& effect : effects)
    if (effect.message != MessageKind::kInvalidate || (entry.pending_acks >> effect.to & 1) == 0 ||
        changed.size() + 1 < effects.size())
      changed.push(effect);
    else
      entry.pending_acks &= ~(std::uint64_t{1} << effect.to);
  effects = changed;
}

inline void mutate_home_step(Bug bug, const DirectoryEntry& before, const HomeEvent& event,
                             NodeId home, DirectoryEntry& entry, HomeEffects& effects) {
  const bool became_busy = before.busy != entry.busy;
  HomeEffects changed;
  switch (bug) {
    case Bug::kGrantBeforeAcks:
      if (became_busy && entry.busy == 2)
        effects.push(
            {EffectKind::kSend, MessageKind::kGrant, entry.requester_id, entry.requester_id});
      return;
    case Bug::kSharerForgotten:
      if (became_busy && entry.busy == 2) forget_sharer(entry, effects);
      return;
    case Bug::kReaderNotRecorded:
      if (event.kind == MessageKind::kReadRequest && before.sharers != 0)
        entry.sharers &= ~(std::uint64_t{1} << event.from.value) | before.sharers;
      return;
    case Bug::kIdleDuringDowngrade:
      if (entry.busy == 1 && before.sharers == 0) entry.busy = entry.requester_id = 0;
      return;
    case Bug::kIdleDuringOwnRead:
      if (entry.busy == 1 && entry.requester() == home) entry.busy = entry.requester_id = 0;
      return;
    case Bug::kWaitingNotServed:
      if (before.busy != 0 && entry.busy == 0) entry.waiting_readers = entry.waiting_writers = 0;
      if (before.busy != 0 && event.kind == MessageKind::kDowngraded) effects.clear();
      return;
    case Bug::kEvictionNotAwaited:
      if (entry.busy != 3) return;
      entry.sharers &= ~(std::uint64_t{1} << entry.requester_id);
      entry.busy = entry.requester_id = 0;
      return;
    case Bug::kSupplierEvicted:
    case Bug::kEvictsTheNewOwner: {
      const bool takes_back = event.kind == MessageKind::kEvictRequest && !effects.empty() &&
                              effects[0].message == MessageKind::kTakeBack;
      if (!takes_back || (before.sharers != 0) != (bug == Bug::kSupplierEvicted)) return;
      effects.clear();
      effects.push({EffectKind::kSend, MessageKind::kInvalidate,
                    static_cast<std::uint8_t>(event.from.value),
                    static_cast<std::uint8_t>(home.value)});
      entry.busy = 3;
      entry.requester_id = static_cast<std::uint8_t>(event.from.value);
      return;
    }
    case Bug::kEvictedStaysOwner:
      if (before.busy == 3 && entry.busy != 3) entry.owner_code = before.owner_code;
      return;
    case Bug::kSoleSharerGetsNoData:
      for (const Effect& effect : effects)
        if (!sends(effect, MessageKind::kFetchForGrant) || entry.busy != 0) changed.push(effect);
      effects = changed;
      return;
    case Bug::kGivenBackLate:
      if (event.kind == MessageKind::kGivenBack && entry.idle())
        entry.sharers &= ~(std::uint64_t{1} << event.from.value);
      return;
    case Bug::kOwnerNotChanged:
      if (entry.sharers == 0 && before.sharers == 0 && entry.idle())
        entry.owner_code = before.owner_code;
      return;
    default:
      return;
  }
}

inline const char* name_of(Bug bug) {
  constexpr const char* kNames[] = {"None",
                                    "CopyBeforeRevoke",
                                    "AckBeforeUnmap",
                                    "NoProtect",
                                    "NoUnmap",
                                    "InstallBeforeCopyIn",
                                    "ReadCopyWritable",
                                    "NoWake",
                                    "StaleFaultIgnored",
                                    "DataIsGrant",
                                    "GrantIsData",
                                    "GrantBeforeAcks",
                                    "SharerForgotten",
                                    "ReaderNotRecorded",
                                    "UpgradeWithoutCopy",
                                    "IdleDuringDowngrade",
                                    "IdleDuringOwnRead",
                                    "WaitingNotServed",
                                    "EarlyInvalidateDropped",
                                    "UpgradeKeepsCopy",
                                    "UpgradeHolds",
                                    "HeldForgotten",
                                    "PendingLost",
                                    "OwnerNotChanged",
                                    "ConfirmationMissing",
                                    "ChannelReorders",
                                    "EvictsAtOnce",
                                    "EvictionNotAwaited",
                                    "SupplierEvicted",
                                    "EvictedStaysOwner",
                                    "TakesBackTwice",
                                    "SoleSharerGetsNoData",
                                    "EvictsTheNewOwner",
                                    "OfferTakenWhileAsking",
                                    "WithdrawnCopyStays",
                                    "GivenBackLate",
                                    "GivesBackUsedCopy",
                                    "OffersBeforeReturn"};
  static_assert(sizeof kNames / sizeof *kNames == static_cast<std::size_t>(Bug::kCount));
  return kNames[static_cast<std::size_t>(bug)];
}

}  // namespace amasia::dsm::protocol
