// SPDX-License-Identifier: Apache-2.0
#include "dsm/stretches.hpp"

#include <algorithm>

namespace amasia::dsm {

const Stretches::Stretch* Stretches::find(PageIndex page) const {
  const auto found = std::find_if(told_.begin(), told_.end(),
                                  [page](const Stretch& one) { return has(one, page); });
  return found != told_.end() ? &*found : nullptr;
}

std::optional<PageIndex> Stretches::end_of(PageIndex page) const {
  const Stretch* const found = find(page);
  if (found == nullptr) return std::nullopt;
  return PageIndex{found->run.first.value + found->run.count};
}

bool Stretches::is_to_be_asked(PageIndex page, Nanos now) {
  const Stretch* const known = find(page);
  if (known != nullptr && now - known->told_at < kLasts) return false;
  Question* free = nullptr;
  for (Question& question : asked_) {
    if (now - question.asked_at >= kLost) {
      free = &question;
      continue;
    }
    const std::uint64_t low = std::min(page.value, question.page.value);
    if (std::max(page.value, question.page.value) - low < kNear) return false;
  }
  if (free == nullptr) return false;
  *free = {page, now};
  return true;
}

void Stretches::note(PageIndex page, PageRun stretch, Nanos now) {
  for (Question& question : asked_) {
    if (question.page == page) question.asked_at = kAnswered;
  }
  if (page.value - stretch.first.value >= stretch.count) return;
  const std::uint64_t end = stretch.first.value + stretch.count;
  Stretch* place = nullptr;
  for (Stretch& old : told_) {
    const bool overlaps = old.run.first.value < end &&
                          stretch.first.value < old.run.first.value + old.run.count;
    if (!overlaps) continue;
    old = {};
    place = &old;
  }
  if (place == nullptr) {
    place = &told_[next_];
    next_ = (next_ + 1) % kMost;
  }
  *place = {stretch, now};
}

}  // namespace amasia::dsm
