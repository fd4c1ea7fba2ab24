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

bool ArgumentPages::may_offer(std::uint64_t page) {
  Page& known = entry(page);
  if (known.left_out > 0) {
    --known.left_out;
    return false;
  }
  const bool all_came_back = known.given_back >= known.offered;
  if (known.offered > 0 && all_came_back) known.doublings = 0;
  known.given_back = 0;
  const std::uint32_t offered = std::exchange(known.offered, 0);
  if (offered == 0 || all_came_back) return true;
  known.left_out = (kLeftOut << known.doublings) - 1;
  known.doublings = std::min(known.doublings + 1, kMostDoublings);
  return false;
}

bool ArgumentPages::note_offer(std::uint64_t page, std::uint32_t nodes) {
  Page& known = entry(page);
  const bool is_new = !known.returns && known.regions == 0;
  ++known.regions;
  if (known.returns && known.regions >= kRelearn) {
    known.returns = false;
  } else if (!known.returns && !is_new && nodes > 0) {
    known.returns = true;
    known.regions = 0;
  }
  known.in_vain = nodes == 0 ? known.in_vain + 1 : 0;
  if (known.in_vain >= kInVain) known.left_out = kLeftOut - 1;
  known.offered = known.returns ? nodes : 0;
  return known.returns;
}

void ArgumentPages::note_given_back(std::uint64_t page) { ++entry(page).given_back; }

}  // namespace amasia::omp
