// SPDX-License-Identifier: Apache-2.0
#include "dsm/page_uses.hpp"

#include <algorithm>
#include <limits>

namespace amasia::dsm {

Result<PageUses> PageUses::make() {
  auto entries = os::ReservedArray<PageUse>::make(kSets * kWays);
  if (!entries.ok()) return entries.error();
  PageUses made;
  made.entries_ = std::move(entries).value();
  return made;
}

PageUse* PageUses::set_of(PageIndex page) {
  const std::uint64_t hash = (page.value * 0x9e37'79b9'7f4a'7c15ULL) >> 40;
  return &entries_[hash % kSets * kWays];
}

PageUse* PageUses::entry_of(PageIndex page) {
  PageUse* const set = set_of(page);
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].installed_at != 0 && set[i].page == page.value) return &set[i];
  }
  return nullptr;
}

PageUse* PageUses::find(PageIndex page) {
  PageUse* const use = entry_of(page);
  return use != nullptr && !use->lost ? use : nullptr;
}

PageUse* PageUses::renew(PageIndex page, Nanos now) {
  PageUse* use = entry_of(page);
  if (use == nullptr) {
    PageUse* const set = set_of(page);
    for (std::size_t i = 0; i < kWays; ++i) {
      if (set[i].held) continue;
      if (use == nullptr || set[i].installed_at < use->installed_at) use = &set[i];
    }
    if (use == nullptr) return nullptr;
  }
  *use = PageUse{};
  use->page = page.value;
  use->installed_at = now;
  return use;
}

void PageUses::note_loss(PageIndex page) {
  PageUse* const use = find(page);
  if (use == nullptr) return;
  use->lost = true;
  use->held = false;
}

Nanos cpu_used_since_install(const PageUse& use) {
  Nanos least = std::numeric_limits<Nanos>::max();
  for (std::size_t i = 0; i < PageUse::kThreads && use.thread_ids[i] != 0; ++i) {
    const Nanos used = os::thread_cpu_time(use.thread_ids[i]);
    if (used >= 0) least = std::min(least, used - use.cpu_at_install[i]);
  }
  return least == std::numeric_limits<Nanos>::max() ? -1 : std::max<Nanos>(least, 0);
}

bool all_paused_since_install(const PageUse& use) {
  if (use.unwatched || use.thread_ids[0] == 0) return false;
  for (std::size_t i = 0; i < PageUse::kThreads && use.thread_ids[i] != 0; ++i) {
    // Acquire, partner: Engine::note_pause. A slot that serves another thread by now says nothing,
    // and neither does the one that many threads share.
    const std::uint32_t pauses = use.slots[i]->pauses.load(std::memory_order_acquire);
    const bool same = use.slots[i]->thread_id.load(std::memory_order_relaxed) == use.thread_ids[i];
    if (!same || pauses == use.pauses_at_install[i]) return false;
  }
  return true;
}

bool is_in_use_by(const PageUse& use, const ThreadSlot& slot) {
  const std::int32_t thread_id = slot.thread_id.load(std::memory_order_relaxed);
  // Relaxed: the thread waits in its fault meanwhile.
  const std::uint32_t pauses = slot.pauses.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < PageUse::kThreads && use.thread_ids[i] != 0; ++i) {
    if (use.thread_ids[i] == thread_id) return use.pauses_at_install[i] == pauses;
  }
  return false;
}

}  // namespace amasia::dsm
