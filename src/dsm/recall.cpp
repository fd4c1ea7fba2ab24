// SPDX-License-Identifier: Apache-2.0
#include "dsm/recall.hpp"

#include <algorithm>

namespace amasia::dsm {

std::size_t Recall::slot_of(std::uint64_t place) {
  return static_cast<std::size_t>((place * 0x9e37'79b9'7f4a'7c15ULL) >> 32) % kPlaces;
}

Recall::Memory& Recall::memory_of(std::uint64_t place) {
  Memory& memory = memories_[slot_of(place)];
  if (memory.place != place) {
    memory = Memory{};
    memory.place = place;
  }
  return memory;
}

// Whether it is asked for or not, the next period begins.
bool Recall::is_due(const Memory& memory, Need& need) {
  if (need.period == 0 || memory.entries - need.last != need.period) return false;
  need.last = memory.entries;
  return need.banned_until <= memory.entries;
}

void Recall::note_request(Memory& memory, Need& need) {
  memory.idle = 0;
  need.asked = memory.entries;
  if (++need.asks < kRelearn) return;
  need.asks = 0;
  need.period = 0;  // the next fault tells it
}

void Recall::ban(const Memory& memory, Need& need) {
  need.banned_until = memory.entries + 1 + (kBan << need.bans);
  need.bans = std::min(need.bans + 1, kMostBans);
}

void Recall::on_fault(std::uint64_t place, PageIndex page, Want want) {
  if (place == 0) return;
  Memory& memory = memory_of(place);
  memory.idle = 0;
  Need* known = nullptr;
  for (Need& need : memory.needs) {
    if (need.last == 0 || need.page != page.value) continue;
    if (need.want == want) known = &need;
    // To write what was asked for to be read is another need.
    const bool in_vain = need.asked == memory.entries &&
                         !(need.want == Want::kRead && want == Want::kOwn);
    if (in_vain && need.banned_until <= memory.entries) ban(memory, need);
  }
  if (known == nullptr) {
    known = &*std::ranges::min_element(memory.needs, {}, &Need::last);
    *known = Need{};
    known->page = page.value;
    known->want = want;
  } else if (known->last != memory.entries) {
    const std::uint32_t gap = memory.entries - known->last;
    known->period = gap <= kLongestPeriod ? gap : 0;
  }
  known->last = memory.entries;
}

}  // namespace amasia::dsm
