// SPDX-License-Identifier: Apache-2.0
#include "dsm/load_store.hpp"

#include <algorithm>

namespace amasia::dsm {

void LoadStore::forget(Spot& spot) {
  spot.pairs = 0;
  spot.trust = kFirstTrust;
  spot.asked = 0;
}

LoadStore::Spot& LoadStore::spot_of(std::uint64_t place, std::int32_t thread_id, PageIndex page) {
  const std::uint64_t part = page.value / kPart;
  const auto thread = static_cast<std::uint32_t>(thread_id);
  const std::uint64_t mixed = (place ^ part * 0x9e37'79b9'7f4a'7c15ULL) + thread;
  Spot& spot = spots_[((mixed * 0x9e37'79b9'7f4a'7c15ULL) >> 32) % kSpots];
  if (spot.place != place || spot.part != part || spot.thread_id != thread_id) {
    spot = Spot{.place = place, .part = part, .thread_id = thread_id};
  }
  return spot;
}

bool LoadStore::on_load(std::uint64_t place, std::int32_t thread_id, PageIndex page) {
  if (place == 0) return false;
  Spot& spot = spot_of(place, thread_id, page);
  if (spot.awaits_store) forget(spot);  // the last load was not followed by a store
  spot.awaits_store = false;
  if (spot.pairs >= kPairsUntilKnown && spot.asked < spot.trust) {
    ++spot.asked;
    return true;
  }
  spot.awaits_store = true;
  spot.loaded = page.value;
  return false;
}

void LoadStore::on_store(std::uint64_t place, std::int32_t thread_id, PageIndex page, Nanos used) {
  if (place == 0) return;
  Spot& spot = spot_of(place, thread_id, page);
  if (!spot.awaits_store) {
    // Of a page that came before it was loaded.
    if (spot.pairs > 0) ++spot.pairs;
    return;
  }
  if (spot.loaded != page.value) return;
  spot.awaits_store = false;
  if (used > kSoon) return forget(spot);
  if (spot.pairs >= kPairsUntilKnown) spot.trust = std::min(spot.trust * 2, kMostTrust);
  ++spot.pairs;
  spot.asked = 0;
}

bool LoadStore::expects_store(std::uint64_t place, std::int32_t thread_id, PageIndex page) {
  return place != 0 && spot_of(place, thread_id, page).pairs >= kPairsUntilKnown;
}

}  // namespace amasia::dsm
