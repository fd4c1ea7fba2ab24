// SPDX-License-Identifier: Apache-2.0
// Read-ahead: which pages to ask for before a thread touches them. Pure.
//
// A table of streams recognises many sequential walks at once: interleaved arrays, and the columns
// of a loop nest that goes through memory by its outer dimension. A stream is
//
//      touched ...  trigger  ...  ahead_end
//      |--- asked for already ---|  <- next to ask for
//
// A fault at ahead_end continues the walk the slow way (the thread waits) and opens a window. A
// fault at the trigger is cheap, because its page has arrived and was only left out of the view;
// it opens the next window while the thread works through the present one. Windows double from
// kFirstWindow up to a limit, as long as the walk goes on.
//
// Repeated walks: programs walk over the same pages again and again, in between which others write
// them: borders, and a thread's part of an array. How far the walk from a page came is remembered;
// the next one that begins there asks for that much, and for no more: beyond it may be another
// node's part, which would have to take it back page by page. Further on the walk is followed as a
// new one. Since the walk then faults only where it begins, nobody sees whether it still goes as
// far: every kRelearn-th time the last page that is asked for is left out of the view, and where it
// has not been touched by the next time, the half is remembered.
//
// Writing walks: a page asked for in vain is taken away from its owner, so a stream that writes
// must have been longer, and its window stays smaller.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"
#include "dsm/address_space.hpp"

namespace amasia::dsm {

class ReadAhead {
 public:
  static constexpr std::size_t kStreams = 512;
  static constexpr PageCount kFirstWindow = 4;
  static constexpr std::uint32_t kReadsBeforeWindow = 2;  // faults in sequence, this one included
  static constexpr std::uint32_t kWritesBeforeWindow = 4;
  static constexpr std::size_t kWalks = 1024;  // remembered
  static constexpr std::uint32_t kRelearn = 32;

  // `largest`: of a reading stream's window; half of it for a writing one. 0: never ask.
  explicit ReadAhead(PageCount largest) : largest_read_(largest), largest_write_(largest / 2) {}

  // What to do after a fault: ask for `run` (empty: nothing) in the same way as the fault, and
  // leave `trigger` out of the view when it arrives.
  struct Plan {
    PageRun run{};
    bool has_trigger = false;
    bool is_followed = false;  // the fault is one of a walk for which windows were opened before
  };

  // `segment_end`: one more than the last page that may be asked for; who walks on there begins
  // anew. `on_its_way`: the page has been asked for already.
  Plan on_fault(PageIndex page, bool write, PageIndex segment_end, bool on_its_way = false);

  // How far the walk from this page came the last time, in pages; 0: none is remembered.
  PageCount reach_from(PageIndex page, bool write) const;

  // Whether a stream wants to hear of this access though the page has arrived.
  bool is_trigger(PageIndex page, bool write) const;
  // The first trigger within the run, for which no page of it should be mapped unasked.
  bool find_trigger(PageRun run, PageIndex* trigger) const;

 private:
  struct Stream {
    std::uint64_t first = 0;      // the page where the walk began
    std::uint64_t ahead_end = 0;  // 0: unused; page 0 never continues a walk
    std::uint64_t trigger = 0;    // 0: none
    PageCount window = 0;
    std::uint64_t last_use = 0;
    std::uint32_t length = 0;  // faults in sequence
    bool write = false;
    std::uint64_t known_end = 0;  // of the walks that began there before; 0: none did
    std::uint64_t bound = 0;      // the segment's end, where a window was cut; 0: none was
  };
  // How far the walks that began at a page came.
  struct Walk {
    std::uint64_t first = 0;  // 0: none is remembered here
    PageCount reach = 0;      // pages
    bool write = false;
    std::uint32_t repeats = 0;
    std::uint64_t look_out = 0;  // left out of the view to see whether it is touched; 0: none
  };
  static std::size_t slot_of_walk(std::uint64_t first, bool write);
  Walk& walk_from(std::uint64_t first, bool write) { return walks_[slot_of_walk(first, write)]; }
  // How far it is known to come now, in pages; 0: that is to be found out.
  static PageCount reach_now(Walk& walk);
  Plan begin(PageIndex page, bool write, PageIndex segment_end);
  void note_reach(const Stream& stream, PageIndex page);
  Stream* find(PageIndex page, bool write, bool on_its_way);
  Stream& oldest();
  Plan open_window(Stream& stream, PageIndex page, PageIndex segment_end);

  PageCount largest_read_;
  PageCount largest_write_;
  std::uint64_t uses_ = 0;
  std::array<Stream, kStreams> streams_{};
  std::array<Walk, kWalks> walks_{};
};

}  // namespace amasia::dsm
