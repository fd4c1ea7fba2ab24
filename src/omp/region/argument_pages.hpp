// SPDX-License-Identifier: Apache-2.0
// Which pages other nodes are given along with a region: those on the forking thread's stack that
// its arguments point into, since they read these first, and each read costs them the way to the
// origin and back. Pure.
//
//   way        the other nodes                   is right where
//   lasting    keep their copies                 the page is not written between regions
//   returned   give them back with what they     it is: the origin then writes it without having to
//              tell the origin next (a share     ask for the copies
//              of a reduction, that they have
//              joined)
//
// A page begins as lasting. If nodes need it again at the next region, it was written, and returns
// from then on; every kRelearn regions it is tried as lasting once. Copies that do not come back
// were used for more, or were taken away in the region: then the page is left out for some regions,
// twice as many each time. A page that nobody needs, since all have it or it is another node's by
// then, is looked at in some regions only.
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

class ArgumentPages {
 public:
  static constexpr std::size_t kPages = 16;  // remembered; an older one makes room
  static constexpr std::uint32_t kRelearn = 64;
  static constexpr std::uint32_t kLeftOut = 8, kMostDoublings = 5;
  static constexpr std::uint32_t kInVain = 4;

  // The pages that `words` point into, in a window from that of `low` on.
  static PageWindow window_of(std::span<void* const> words, const void* low);

  // Before a region, for each page (its address): whether it is worth offering.
  bool may_offer(std::uint64_t page);
  // Then: to how many nodes it was, since they had none. True: copies are to be given back.
  bool note_offer(std::uint64_t page, std::uint32_t nodes);
  // A node gave its copy back.
  void note_given_back(std::uint64_t page);

 private:
  struct Page {
    std::uint64_t address = 0;
    bool returns = false;
    std::uint32_t offered = 0;     // to so many nodes that are to give it back
    std::uint32_t given_back = 0;  // by so many of them
    std::uint32_t in_vain = 0;     // so many offers lately were for nobody
    std::uint32_t regions = 0;     // since it returns
    std::uint32_t left_out = 0;    // for so many more regions
    std::uint32_t doublings = 0;
  };
  Page& entry(std::uint64_t page);

  std::array<Page, kPages> pages_{};
  std::size_t next_ = 0;
};

}  // namespace amasia::omp
