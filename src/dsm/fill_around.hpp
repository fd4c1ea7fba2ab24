// SPDX-License-Identifier: Apache-2.0
// Pages around scattered faults: a loop that gathers through an index meets the pages of an array
// in no order, so no walk is recognised and each page costs a wait of its own. Where several pages
// of a block have been waited for, all of the block is asked for at once. Pure.
//
// A page asked for in vain costs a tenth of a wait here, and its owner, if it writes the page, a
// whole one. So a block is filled early but once. If its pages are waited for again, others have
// taken them back, and only a block of which many pages are waited for is filled again: of those
// that nodes take from each other for good mostly few are needed. Nor for writes, unless
// nodes take long turns: who begins to write its part of an array would take the end of its
// neighbour's.
// (Blocks filled by the density of their faults: the driver of NVIDIA's unified memory, told by
// Ganguly et al., "Interplay between hardware prefetcher and page eviction policy in CPU-GPU
// unified virtual memory", ISCA 2019.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::dsm {

// Where turns are stretched (protocol/turns.hpp) nodes sweep over all pages, and those of a turn's
// owner are of no use to others meanwhile: there writes fill blocks, too.
struct BlockInTurn {
  bool own = false;             // the turn is this node's
  bool had = false;             // the page that is waited for was here before the turn
  std::uint64_t known = 0;      // pages that threads of this node have waited for before
  std::uint64_t scattered = 0;  // what FillAround would have asked for

  // Which pages to ask for as a writer. In its turn a node collects what it had and lost, and fills
  // the block. In the turns of others it fills it with what is new to it, as who begins late must:
  // the others may have done their part. What it had is not asked for then: of three nodes the last
  // would have it before the one whose turn comes next.
  std::uint64_t wanted() const {
    if (!own) return scattered & ~known;
    return scattered | (had ? known : 0);
  }
};

class FillAround {
 public:
  static constexpr PageCount kBlock = 64;       // pages, aligned; a bit of a word each
  static constexpr std::size_t kBlocks = 1024;  // watched at a time
  // Pages that have been waited for when the others are asked for: the first time, and again.
  static constexpr int kFirst = 3;
  static constexpr int kAgain = 16;
  // Faults of the node without one in the block, after which it is as if there had been none.
  static constexpr std::uint64_t kMemory = 1024;

  // A thread waits to read this page, and no walk was seen to come by. Which other pages of its
  // block to ask for: bit i is page i of the block. 0: none.
  std::uint64_t on_fault(PageIndex page);

 private:
  struct Block {
    std::uint64_t number = 0;
    std::uint64_t last_fault = 0;  // counted over all blocks; 0: unused
    // Pages since one of them was waited for once more.
    std::uint64_t waited_for = 0;
    int enough = kFirst;
  };

  std::uint64_t faults_ = 0;
  std::array<Block, kBlocks> blocks_{};
};

}  // namespace amasia::dsm
