// SPDX-License-Identifier: Apache-2.0
// Which pages whose home is elsewhere take memory on this node, and which of them to evict next.
// Guarded by the engine's lock.
//
// No access is seen, so a clock over install times chooses: the hand goes round in the order of
// addresses, and a page that has come since it last passed is let off once. So a page stays for at
// least a whole turn, and what goes lies in runs.
//
//   memory(page)   the page of the file behind the copy exists; set by note(), cleared by forget()
//   young(page)    it has come since the hand last passed; only where memory(page)
//   a bit of a summary level is set <=> one of its 64 bits of the level below is
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/base.hpp"
#include "dsm/address_space.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

class PageCopies {
 public:
  static Result<PageCopies> make(PageCount page_limit);

  // Contents of the pages have been written to the file.
  void note(PageRun run);
  // Their memory has been given back.
  void forget(PageRun run);
  bool has_memory(PageIndex page) const { return bit(levels_[0], page.value); }
  PageCount count() const { return count_; }

  // The next page that is not let off, and moves the hand behind it; nullopt when none was found
  // among the next `*looks` pages, from which those looked at are taken.
  std::optional<PageIndex> next_victim(std::uint32_t* looks);

 private:
  using Words = os::ReservedArray<std::uint64_t>;
  static bool bit(const Words& words, std::uint64_t index) {
    return (words[index / 64] >> index % 64 & 1) != 0;
  }
  // The first set bit of a level at or after `from`; nullopt: none.
  std::optional<std::uint64_t> find(std::size_t level, std::uint64_t from) const;

  static constexpr std::size_t kLevels = 3;
  std::array<Words, kLevels> levels_;  // the first: memory(page); the others: summaries
  Words young_;
  std::uint64_t hand_ = 0;
  PageCount count_ = 0;
};

}  // namespace amasia::dsm
