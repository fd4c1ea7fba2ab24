// SPDX-License-Identifier: Apache-2.0
#include "dsm/address_space.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/os.hpp"

namespace amasia::dsm {
namespace {

constexpr Bytes kStrideUnit = base::kGiB;
constexpr unsigned kHeapEighths = 7;

bool page_aligned(std::uint64_t value) { return value % base::kPageSize == 0; }

}  // namespace

EarlyOutcome AddressSpace::map(const Settings& settings) noexcept {
  if (mapped()) return {"map managed memory a second time", EEXIST};
  if (settings.node_count == 0 || settings.node_count > base::kMaxNodes ||
      settings.self.value >= settings.node_count || !page_aligned(settings.base) ||
      !page_aligned(settings.globals_span)) {
    return {"accept the shape of managed memory", EINVAL};
  }
  const Bytes stride = base::round_down(settings.span / settings.node_count, kStrideUnit);
  if (stride == 0) return {"give every node an arena of 1 GiB", EINVAL};
  const Bytes arena_bytes = stride * settings.node_count;
  const Bytes file_bytes = settings.globals_span + arena_bytes;

  int reason = os::create_memory_file("amasia", file_bytes, &file_);
  if (reason != 0) return {"make the file behind managed memory", reason};
  std::uintptr_t view = settings.base;
  reason = os::map_shared(file_, settings.globals_span, arena_bytes, os::Placement::kAtFreeAddress,
                          &view);
  if (reason != 0) return {"map managed memory at its fixed address", reason};
  std::uintptr_t alias = 0;
  reason = os::map_shared(file_, 0, file_bytes, os::Placement::kAnywhere, &alias);
  if (reason != 0) return {"map managed memory a second time for the runtime", reason};
  // The view is dumped; the same pages once more would double every core file. A kernel that
  // refuses the advice only makes larger dumps.
  static_cast<void>(os::exclude_from_dumps(alias, file_bytes));

  self_ = settings.self;
  node_count_ = settings.node_count;
  base_ = settings.base;
  stride_ = stride;
  span_ = arena_bytes;
  globals_span_ = settings.globals_span;
  alias_ = alias;
  return {};
}

EarlyOutcome AddressSpace::add_globals(AddressRange range) noexcept {
  if (!mapped()) return {"add globals before managed memory is mapped", EINVAL};
  if (range.begin >= range.end || !page_aligned(range.begin) || !page_aligned(range.end)) {
    return {"add globals that do not end at pages", EINVAL};
  }
  if (global_count_ == kMaxGlobalRanges) return {"keep so many ranges of globals", ENOSPC};
  PageIndex first{0};
  if (global_count_ > 0) {
    const GlobalRange& last = globals_[global_count_ - 1];
    first.value = last.first_page.value + last.count;
  }
  const PageCount count = range.size() / base::kPageSize;
  if (first.value + count > first_arena_page().value) return {"number so many globals", ENOSPC};

  const Bytes offset = first.value * base::kPageSize;
  if (self_ == base::kOrigin) {
    std::memcpy(reinterpret_cast<void*>(alias_ + offset),
                reinterpret_cast<const void*>(range.begin), range.size());
  }
  std::uintptr_t address = range.begin;
  const int reason = os::map_shared(file_, offset, range.size(), os::Placement::kReplace, &address);
  if (reason != 0) return {"map globals into managed memory", reason};
  globals_[global_count_++] = GlobalRange{range.begin, first, count};
  return {};
}

void AddressSpace::release() noexcept {
  if (!mapped()) return;
  static_cast<void>(os::unmap(base_, span_));
  static_cast<void>(os::unmap(alias_, globals_span_ + span_));
  os::close_memory_file(file_);
  alias_ = 0;
  file_ = -1;
  global_count_ = 0;
}

AddressRange AddressSpace::arena(NodeId node) const {
  AMASIA_CHECK(node.value < node_count_, "an arena of a node that is not in the job");
  const std::uintptr_t begin = base_ + stride_ * node.value;
  return {begin, begin + stride_};
}

AddressRange AddressSpace::heap(NodeId node) const {
  const AddressRange whole = arena(node);
  return {whole.begin, whole.begin + stride_ / 8 * kHeapEighths};
}

AddressRange AddressSpace::stacks(NodeId node) const {
  const AddressRange whole = arena(node);
  return {whole.begin + stride_ / 8 * kHeapEighths, whole.end};
}

AddressRange AddressSpace::spread() const {
  const AddressRange whole = heap(base::kOrigin);
  return {node_count_ > 1 ? whole.begin + stride_ / 2 : whole.end, whole.end};
}

AddressRange AddressSpace::even_spread() const {
  const AddressRange whole = spread();
  return {whole.size() > 0 ? whole.begin + stride_ / 4 : whole.end, whole.end};
}

bool AddressSpace::is_spread(PageIndex page) const noexcept {
  const PageCount in_spread = page.value - first_spread_page();  // unsigned: large below it
  return node_count_ > 1 &&
         in_spread < (stride_ / 8 * kHeapEighths - stride_ / 2) / base::kPageSize;
}

AddressRange AddressSpace::global_range(std::size_t index) const {
  AMASIA_CHECK(index < global_count_, "a range of globals that was not added");
  const GlobalRange& range = globals_[index];
  return {range.begin, range.begin + range.count * base::kPageSize};
}

std::optional<PageIndex> AddressSpace::page_of(std::uintptr_t address) const noexcept {
  if (address - base_ < span_) {  // unsigned: also false below the base
    return PageIndex{(globals_span_ + (address - base_)) / base::kPageSize};
  }
  for (std::size_t i = 0; i < global_count_; ++i) {
    const GlobalRange& range = globals_[i];
    if (address - range.begin < range.count * base::kPageSize) {
      return PageIndex{range.first_page.value + (address - range.begin) / base::kPageSize};
    }
  }
  return std::nullopt;
}

const AddressSpace::GlobalRange* AddressSpace::global_of(PageIndex page) const noexcept {
  const auto end = globals_.begin() + static_cast<std::ptrdiff_t>(global_count_);
  const auto after = std::upper_bound(
      globals_.begin(), end, page,
      [](PageIndex wanted, const GlobalRange& range) { return wanted < range.first_page; });
  if (after == globals_.begin()) return nullptr;
  const GlobalRange& range = *std::prev(after);
  return page.value - range.first_page.value < range.count ? &range : nullptr;
}

bool AddressSpace::is_valid(PageIndex page) const noexcept {
  if (page >= first_arena_page()) return page.value < page_limit();
  return global_of(page) != nullptr;
}

PageRun AddressSpace::within_segment(PageRun run) const noexcept {
  PageCount end = 0;
  if (run.first >= first_arena_page()) {
    const PageCount arena_pages = stride_ / base::kPageSize;
    const PageCount in_arenas = run.first.value - first_arena_page().value;
    constexpr PageCount kStripePages = kStripe / base::kPageSize;
    if (is_spread(run.first)) {
      const PageCount in_spread = run.first.value - first_spread_page();
      end = first_spread_page() + (in_spread / kStripePages + 1) * kStripePages;
      return {run.first, std::min(run.count, end - run.first.value)};
    }
    if (node_count_ > 1 && run.first.value < first_spread_page()) {
      return {run.first, std::min(run.count, first_spread_page() - run.first.value)};
    }
    end = first_arena_page().value + (in_arenas / arena_pages + 1) * arena_pages;
  } else {
    const GlobalRange* const range = global_of(run.first);
    AMASIA_CHECK(range != nullptr, "a page that no segment holds");
    end = range->first_page.value + range->count;
  }
  return {run.first, std::min(run.count, end - run.first.value)};
}

bool AddressSpace::is_valid(PageRun run) const noexcept {
  return run.count > 0 && is_valid(run.first) && within_segment(run).count == run.count;
}

std::byte* AddressSpace::address_of(PageIndex page) const noexcept {
  if (page >= first_arena_page()) {
    AMASIA_CHECK_DEBUG(page.value < page_limit(), "a page beyond managed memory");
    return reinterpret_cast<std::byte*>(base_ + page.value * base::kPageSize - globals_span_);
  }
  const GlobalRange* const range = global_of(page);
  AMASIA_CHECK(range != nullptr, "a page that no segment holds");
  return reinterpret_cast<std::byte*>(range->begin +
                                      (page.value - range->first_page.value) * base::kPageSize);
}

std::byte* AddressSpace::alias_of(PageIndex page) const noexcept {
  AMASIA_CHECK_DEBUG(page.value < page_limit(), "a page beyond managed memory");
  return reinterpret_cast<std::byte*>(alias_ + page.value * base::kPageSize);
}

NodeId AddressSpace::home_of(PageIndex page) const noexcept {
  if (is_spread(page)) {
    const PageCount in_spread = page.value - first_spread_page();
    const PageCount stripe = in_spread / (kStripe / base::kPageSize);
    if (in_spread >= stride_ / 4 / base::kPageSize) {  // even_spread()
      return NodeId{static_cast<NodeId::representation>(stripe % node_count_)};
    }
    return NodeId{static_cast<NodeId::representation>(1 + stripe % (node_count_ - 1))};
  }
  return arena_of(page);
}

NodeId AddressSpace::arena_of(PageIndex page) const noexcept {
  if (page < first_arena_page()) return base::kOrigin;
  const PageCount in_arenas = page.value - first_arena_page().value;
  return NodeId{static_cast<NodeId::representation>(in_arenas / (stride_ / base::kPageSize))};
}

}  // namespace amasia::dsm
