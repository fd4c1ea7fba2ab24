// SPDX-License-Identifier: Apache-2.0
#include "dsm/page_copies.hpp"

#include <bit>

namespace amasia::dsm {

Result<PageCopies> PageCopies::make(PageCount page_limit) {
  PageCopies made;
  std::uint64_t bits = page_limit;
  for (Words& level : made.levels_) {
    bits = bits / 64 + 1;
    auto words = Words::make(bits);
    if (!words.ok()) return words.error();
    level = std::move(words).value();
  }
  auto young = Words::make(made.levels_[0].size());
  if (!young.ok()) return young.error();
  made.young_ = std::move(young).value();
  return made;
}

void PageCopies::note(PageRun run) {
  for (PageCount i = 0; i < run.count; ++i) {
    const std::uint64_t page = run.first.value + i;
    const std::uint64_t mask = std::uint64_t{1} << page % 64;
    young_[page / 64] |= mask;
    if ((levels_[0][page / 64] & mask) != 0) continue;
    ++count_;
    std::uint64_t index = page;
    for (Words& level : levels_) {
      level[index / 64] |= std::uint64_t{1} << index % 64;
      index /= 64;
    }
  }
}

void PageCopies::forget(PageRun run) {
  for (PageCount i = 0; i < run.count; ++i) {
    const std::uint64_t page = run.first.value + i;
    AMASIA_CHECK(bit(levels_[0], page), "memory is given back twice");
    --count_;
    young_[page / 64] &= ~(std::uint64_t{1} << page % 64);
    std::uint64_t index = page;
    for (Words& level : levels_) {
      level[index / 64] &= ~(std::uint64_t{1} << index % 64);
      if (level[index / 64] != 0) break;
      index /= 64;
    }
  }
}

std::optional<std::uint64_t> PageCopies::find(std::size_t level, std::uint64_t from) const {
  const Words& words = levels_[level];
  std::uint64_t word = from / 64;
  if (word >= words.size()) return std::nullopt;
  const std::uint64_t rest = words[word] >> from % 64;
  if (rest != 0) return from + static_cast<std::uint64_t>(std::countr_zero(rest));
  ++word;
  if (level + 1 < kLevels) {
    const auto next = find(level + 1, word);
    if (!next.has_value()) return std::nullopt;
    word = *next;
  } else {
    while (word < words.size() && words[word] == 0) ++word;
    if (word == words.size()) return std::nullopt;
  }
  return word * 64 + static_cast<std::uint64_t>(std::countr_zero(words[word]));
}

std::optional<PageIndex> PageCopies::next_victim(std::uint32_t* looks) {
  while (count_ > 0 && *looks > 0) {
    --*looks;
    const auto found = find(0, hand_);
    if (!found.has_value()) {
      hand_ = 0;
      continue;
    }
    hand_ = *found + 1;
    const std::uint64_t mask = std::uint64_t{1} << *found % 64;
    std::uint64_t& young = young_[*found / 64];
    if ((young & mask) == 0) return PageIndex{*found};
    young &= ~mask;
  }
  return std::nullopt;
}

}  // namespace amasia::dsm
