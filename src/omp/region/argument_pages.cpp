// SPDX-License-Identifier: Apache-2.0
#include "omp/region/argument_pages.hpp"

#include <algorithm>
#include <utility>

#include "base/base.hpp"

namespace amasia::omp {

PageWindow ArgumentPages::window_of(std::span<void* const> words, const void* low) {
  constexpr std::uint64_t kCount = 32;
  const auto begin = reinterpret_cast<std::uintptr_t>(low);
  PageWindow window{base::round_down(begin, base::kPageSize), 0};
  for (const void* const word : words) {
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    if (address < begin) continue;
    const std::uint64_t page = (address - window.first) / base::kPageSize;
    if (page < kCount) window.mask |= std::uint32_t{1} << page;
  }
  return window;
}

ArgumentPages::Page& ArgumentPages::entry(std::uint64_t page) {
  const auto known = std::ranges::find(pages_, page, &Page::address);
  if (known != pages_.end()) return *known;
  Page& made = pages_[next_++ % kPages];
  made = Page{.address = page};
  return made;
}

// All copies of the last region.
bool ArgumentPages::has_come_back(Page& page) {
  const std::uint32_t sent = std::exchange(page.sent, 0);
  const bool all = std::exchange(page.given_back, 0) >= sent;
  if (sent > 0 && all) page.doublings = 0;
  return all;
}

ArgumentPages::Way ArgumentPages::next(std::uint64_t page) {
  Page& known = entry(page);
  if (known.left_out > 0) {
    --known.left_out;
    return Way::kNone;
  }
  if (!has_come_back(known)) {
    known.left_out = (kLeftOut << known.doublings) - 1;
    known.doublings = std::min(known.doublings + 1, kMostDoublings);
    return Way::kNone;
  }
  if (!known.is_offered || known.is_probed) return Way::kIfAsked;
  known.is_probed = ++known.regions % kRelearn == 0;
  return known.is_probed ? Way::kLook : Way::kOffer;
}

bool ArgumentPages::note(std::uint64_t page, const PageOffer& offer) {
  Page& known = entry(page);
  if (std::exchange(known.is_probed, false) || !known.is_offered) known.is_offered = offer.asked;
  known.in_vain = offer.nodes == 0 ? known.in_vain + 1 : 0;
  if (known.in_vain >= kInVain) known.left_out = kLeftOut - 1;
  known.sent = offer.nodes;
  return offer.nodes > 0;
}

void ArgumentPages::note_given_back(std::uint64_t page) { ++entry(page).given_back; }

}  // namespace amasia::omp
