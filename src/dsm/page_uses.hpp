// SPDX-License-Identifier: Apache-2.0
// What the holding policy must know of pages that were installed for a waiting thread lately: for
// whom, when, and how much that thread has run since; also of those that were lost again, as a
// thread that soon wants such a page back fights for it. A cache: what it forgot is treated as not
// contended. Guarded by the engine's lock.
#pragma once

#include <array>
#include <cstdint>

#include "base/base.hpp"
#include "dsm/engine.hpp"
#include "dsm/protocol/hold_policy.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

struct PageUse {
  static constexpr std::size_t kThreads = 4;  // of those that waited; further ones are not watched
  std::uint64_t page = 0;
  Nanos installed_at = 0;  // 0: the entry is free
  std::array<std::int32_t, kThreads> thread_ids{};
  std::array<Nanos, kThreads> cpu_at_install{};
  std::array<const ThreadSlot*, kThreads> slots{};
  std::array<std::uint32_t, kThreads> pauses_at_install{};
  bool unwatched = false;  // more threads waited for it
  bool held = false;       // a revocation waits; the entry stays
  bool lost = false;       // after it was held
  protocol::HoldRecord hold;
};

class PageUses {
 public:
  static Result<PageUses> make();

  // Of a page that has not been lost.
  PageUse* find(PageIndex page);
  // Also of a lost one. nullptr: not known.
  const PageUse* find_last(PageIndex page) { return entry_of(page); }
  // A fresh entry for the page, in place of the oldest of its set. nullptr if all are held.
  PageUse* renew(PageIndex page, Nanos now);
  void note_loss(PageIndex page);

 private:
  static constexpr std::size_t kWays = 8;
  static constexpr std::size_t kSets = 8192;
  PageUse* set_of(PageIndex page);
  PageUse* entry_of(PageIndex page);

  os::ReservedArray<PageUse> entries_;
};

// CPU time that the threads have used since the installation; of several, the least. A thread that
// has ended does not count.
Nanos cpu_used_since_install(const PageUse& use);

// Whether each of the threads has called Engine::note_pause() since the installation. False if
// there are none, or more than the entry can watch.
bool all_paused_since_install(const PageUse& use);

// Whether the page was installed for this thread, which has not called Engine::note_pause() since.
bool is_in_use_by(const PageUse& use, const ThreadSlot& slot);

}  // namespace amasia::dsm
