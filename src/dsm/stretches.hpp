// SPDX-License-Identifier: Apache-2.0
// Where walks through other nodes' heaps end: the stretches between the bounds of large blocks, as
// their nodes have told (heap/block_bounds.hpp). What is told comes about as soon as a walk's first
// pages do, and lasts for a while: a block may have been freed since, and its pages be parts of
// others. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/base.hpp"
#include "dsm/address_space.hpp"

namespace amasia::dsm {

class Stretches {
 public:
  static constexpr std::size_t kMost = 128;      // known; older ones are forgotten
  static constexpr std::size_t kMostAsked = 8;   // at once
  static constexpr Nanos kLasts = base::kSecond;
  static constexpr Nanos kLost = 20 * base::kMillisecond;  // from then on it may be asked again
  static constexpr PageCount kNear = 1024;

  // One more than the last page of the stretch that the page is in; nullopt: none is known.
  std::optional<PageIndex> end_of(PageIndex page) const;

  // Whether the node whose heap the page is in is to be asked now. True is taken for its being
  // asked: not again for a page near it until it may be thought lost.
  bool is_to_be_asked(PageIndex page, Nanos now);

  // It has told, of a page that was asked for; `stretch` may be empty.
  void note(PageIndex page, PageRun stretch, Nanos now);

 private:
  struct Stretch {
    PageRun run{};
    Nanos told_at = 0;
  };
  struct Question {
    PageIndex page{};
    Nanos asked_at = kAnswered;
  };
  static constexpr Nanos kAnswered = std::numeric_limits<Nanos>::min() / 2;
  static bool has(const Stretch& stretch, PageIndex page) {
    return page.value - stretch.run.first.value < stretch.run.count;
  }
  const Stretch* find(PageIndex page) const;

  std::array<Stretch, kMost> told_{};
  std::array<Question, kMostAsked> asked_{};
  std::size_t next_ = 0;  // of told_, to be written
};

}  // namespace amasia::dsm
