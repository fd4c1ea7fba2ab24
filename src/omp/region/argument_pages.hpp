// SPDX-License-Identifier: Apache-2.0
// Which pages other nodes are given along with a region: those on the forking thread's stack that
// its arguments point into, if they read them first, since each read costs them the way to the
// origin and back. They give them back with what they tell the origin next (a share of a reduction,
// that they have joined), so that it need not ask for the copies when it writes. Pure.
//
// A page is offered once a node has asked for it since the region before, and has no copy any more:
// it is read in regions, and written in between. In every kRelearn-th region it is not, to see
// whether nodes still ask. Copies that do not come back were used for more, or were taken away in
// the region: then the page is left out for some regions, twice as many each time. A page that
// nobody has asked for is looked at in some regions only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace amasia::omp {

// Some of the 32 pages from the one at `first` on: bit i of `mask` is the i-th.
struct PageWindow {
  std::uint64_t first = 0;  // the page's address
  std::uint32_t mask = 0;
};

// What became of an offer: to how many nodes the page was sent, and whether one had asked for it
// since the last call.
struct PageOffer {
  std::uint32_t nodes = 0;
  bool asked = false;
};

class ArgumentPages {
 public:
  static constexpr std::size_t kPages = 16;  // remembered; an older one makes room
  static constexpr std::uint32_t kRelearn = 64;
  static constexpr std::uint32_t kLeftOut = 8, kMostDoublings = 5;
  static constexpr std::uint32_t kInVain = 4;

  // The pages that `words` point into, in a window from that of `low` on.
  static PageWindow window_of(std::span<void* const> words, const void* low);

  // kLook: to no node, only so that what was asked for before is forgotten; not to be noted.
  enum class Way : std::uint8_t { kNone, kLook, kIfAsked, kOffer };
  // Before a region, for each page (its address): how it is to be offered.
  Way next(std::uint64_t page);
  // Then: what became of it. True: copies were sent, and are to be given back.
  bool note(std::uint64_t page, const PageOffer& offer);
  // A node gave its copy back.
  void note_given_back(std::uint64_t page);

 private:
  struct Page {
    std::uint64_t address = 0;
    bool is_offered = false;
    bool is_probed = false;        // left out in the last region, to see who asks
    std::uint32_t sent = 0;        // in the last region, to so many nodes
    std::uint32_t given_back = 0;  // by so many of them
    std::uint32_t in_vain = 0;     // so many offers lately were for nobody
    std::uint32_t regions = 0;     // in which it was offered
    std::uint32_t left_out = 0;    // for so many more regions
    std::uint32_t doublings = 0;
  };
  Page& entry(std::uint64_t page);
  static bool has_come_back(Page& page);

  std::array<Page, kPages> pages_{};
  std::size_t next_ = 0;
};

}  // namespace amasia::omp
