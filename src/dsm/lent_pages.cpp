// SPDX-License-Identifier: Apache-2.0
#include "dsm/lent_pages.hpp"

#include <bit>
#include <utility>

namespace amasia::dsm {

Result<LentPages> LentPages::make(PageCount page_limit) {
  auto words = decltype(words_)::make(base::round_up(page_limit, kBlock * 64) / (kBlock * 64));
  if (!words.ok()) return words.error();
  LentPages lent;
  lent.words_ = std::move(words).value();
  return lent;
}

void LentPages::note(PageRun run) {
  const std::uint64_t last = (run.first.value + run.count - 1) / kBlock;
  for (std::uint64_t block = run.first.value / kBlock; block <= last; ++block) note_block(block);
}

void LentPages::note_block(std::uint64_t block) {
  if (last_ == block + 1) return;
  last_ = block + 1;
  std::uint64_t& word = words_[block / 64];
  const std::uint64_t bit = std::uint64_t{1} << block % 64;
  if ((word & bit) == 0) ++count_;
  word |= bit;
}

std::optional<PageRun> LentPages::take() {
  if (count_ == 0) return std::nullopt;
  while (words_[hand_] == 0) hand_ = hand_ + 1 == words_.size() ? 0 : hand_ + 1;
  std::uint64_t& word = words_[hand_];
  const std::uint64_t block = hand_ * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
  word &= word - 1;
  --count_;
  last_ = 0;
  return PageRun{PageIndex{block * kBlock}, kBlock};
}

}  // namespace amasia::dsm
