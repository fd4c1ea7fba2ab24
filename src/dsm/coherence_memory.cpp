// SPDX-License-Identifier: Apache-2.0
// The part of Coherence that keeps the node's managed memory within its limit.
//
//   used    = home pages that have memory + copies of other homes' pages that have memory
//   allowed = limit - home pages, but never less than three margins: what has its home here cannot
//             go, and a node without room for copies could not work
//   From allowed - margin copies on pages are evicted, until allowed - 2 margins are left or asked
//   for. What comes in meanwhile finds room in the last margin.
#include <algorithm>
#include <limits>

#include "dsm/coherence.hpp"

namespace amasia::dsm {
namespace {

using protocol::CacheEventKind;
using protocol::CachePage;
using protocol::CacheState;

constexpr PageCount kMarginMin = 512, kMarginMax = 16384;  // 2 MiB, 64 MiB
// Home pages get their memory from the kernel without an event, so that they are counted by what
// the whole file has: whenever so many copies have come, or so much time has passed.
constexpr PageCount kCopiesPerCount = 128;
constexpr Nanos kCountPeriod = 5 * base::kMillisecond;
// Of one entry point, so that it ends soon (S1).
constexpr std::uint32_t kLooks = 4096;
constexpr PageCount kPagesAtOnce = 512;
// A request that had no effect for so long was forgotten by a busy home.
constexpr Nanos kAskAgain = 2 * base::kMillisecond;

}  // namespace

PageCount Coherence::margin() const {
  return std::clamp(settings_.memory_pages / 16, kMarginMin, kMarginMax);
}

void Coherence::count_memory() {
  Bytes bytes = 0;
  const int reason = os::allocated_bytes(space_.file_descriptor(), &bytes);
  if (reason != 0) return fail("cannot learn how much memory the node uses");
  const PageCount pages = bytes / base::kPageSize;
  home_pages_ = pages - std::min(pages, copies_.count());
  counts_.memory_max = std::max(counts_.memory_max, bytes);
  tell_overrun();
  counted_at_ = now_;
  copies_at_count_ = copies_.count();
}

// Once. The program goes on: what the host has is for the host to say, and it may have more.
void Coherence::tell_overrun() {
  if (home_pages_ <= settings_.memory_pages || overrun_told_) return;
  overrun_told_ = true;
  base::log_line(base::LogLevel::kWarning,
                 "the program's data that belong to this node, and cannot go elsewhere, take more "
                 "than the {} MiB that it may use (--memory): allow more, or start more nodes",
                 settings_.memory_pages * base::kPageSize / base::kMiB);
}

PageCount Coherence::copies_allowed() const {
  const PageCount rest = settings_.memory_pages - std::min(settings_.memory_pages, home_pages_);
  return std::max(rest, 3 * margin());
}

bool Coherence::short_of_memory() const {
  return limited() && copies_.count() + margin() > copies_allowed();
}

// Returns whether it has stepped anything.
bool Coherence::make_room() {
  if (!limited()) return false;
  if (copies_.count() >= copies_at_count_ + kCopiesPerCount || now_ - counted_at_ > kCountPeriod) {
    count_memory();
  }
  next_look_ = std::numeric_limits<Nanos>::max();
  if (!short_of_memory()) {
    asked_ = 0;
    return false;
  }
  next_look_ = now_ + kAskAgain;
  if (asked_ > 0 && now_ - asked_at_ > kAskAgain) asked_ = 0;
  const PageCount enough = copies_allowed() - 2 * margin();
  const PageCount wanted = copies_.count() - std::min(copies_.count(), enough);
  if (wanted <= asked_) return false;
  return evict(std::min(wanted - asked_, kPagesAtOnce));
}

bool Coherence::evict(PageCount wanted) {
  bool stepped = false;
  PageRun dead{};
  // Never more than a turn: a page must not be met twice before it is freed.
  auto looks = static_cast<std::uint32_t>(std::min<PageCount>(kLooks, copies_.count()));
  while (wanted > 0) {
    const std::optional<PageIndex> page = copies_.next_victim(&looks);
    if (!page.has_value()) break;
    const CachePage& entry = pages_[page->value];
    const CacheState state = entry.state(false);
    if (state == CacheState::kInvalid) {  // lost long ago, while there was room
      if (page->value != dead.first.value + dead.count) {
        free_memory(dead);
        dead = {*page, 0};
      }
      ++dead.count;
      --wanted;
      continue;
    }
    const bool has_copy = state == CacheState::kExclusive || state == CacheState::kShared;
    if (!has_copy || entry.has_pending() || waiting_.any({*page, 1})) continue;
    step_cache(*page, {CacheEventKind::kEvict}, nullptr);
    stepped = true;
    asked_at_ = now_;
    ++asked_;
    --wanted;
  }
  free_memory(dead);
  return stepped;
}

// Pages that were just taken from this node: their memory is given back at once where it is needed.
void Coherence::free_lost(PageRun run) {
  if (!short_of_memory() || is_home(run.first)) return;
  PageRun dead{};
  for (PageCount i = 0; i < run.count; ++i) {
    const PageIndex page{run.first.value + i};
    const bool lost = pages_[page.value].state(false) == CacheState::kInvalid;
    if (!lost || !copies_.has_memory(page)) continue;
    if (page.value != dead.first.value + dead.count) {
      free_memory(dead);
      dead = {page, 0};
    }
    ++dead.count;
    asked_ -= std::min<PageCount>(asked_, 1);
  }
  free_memory(dead);
}

void Coherence::free_memory(PageRun run) {
  if (run.count == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(space_.alias_of(run.first));
  require(os::remove_pages(first, run.count * base::kPageSize), "free", run);
  copies_.forget(run);
  counts_.pages_evicted += run.count;
}

}  // namespace amasia::dsm
