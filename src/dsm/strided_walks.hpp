// SPDX-License-Identifier: Apache-2.0
// Read-ahead for walks that skip pages: a column of a matrix, a plane across a grid, every
// hundredth row. Without it each of their pages is a wait of its own. Pure.
//
// A step is hardly ever a whole number of pages: 21600 bytes are five pages and a bit, so faults
// are five or six pages apart. Each one says that step k lies within one page; the slopes and
// offsets of all lines through what was seen lately are an interval each, which get narrower as the
// walk goes on. Where a later step may lie in either of two pages, both are asked for.
//
//   three faults in line, by a page at most     a walk, which is watched
//   kFaultsBefore of them                       a window is opened: the next steps are asked for
//   a fault at the trigger or beyond            the next window, twice as long
//
// Pages that are here already cause no fault: a walk that is known well is found again some steps
// later. Some equal distances mean nothing, such as those between the first pages of a program's
// arrays. Where a window was opened in vain, walks have to be longer before the next one is.
// Reads by steps that are shorter than a block are left to fill_around: walks side by side, such as
// those of a sweep through a grid, soon meet all of a block, which comes in one message.
// (Stride prefetching with confidence: Baer and Chen, "An effective on-chip preloading scheme to
// reduce data access penalty", Supercomputing 1991.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"
#include "dsm/address_space.hpp"
#include "dsm/fill_around.hpp"

namespace amasia::dsm {

class StridedWalks {
 public:
  static constexpr std::size_t kWalks = 32;           // followed at a time
  static constexpr std::size_t kRecent = 32;          // faults that are kept
  static constexpr std::uint32_t kFaultsBefore = 6;   // this one included
  static constexpr std::uint32_t kFaultsAtMost = 16;  // where others were in vain
  static constexpr std::int64_t kFirstWindow = 4;     // steps
  static constexpr std::int64_t kLargestWindow = 32;
  // Steps from those that were asked for to the next fault.
  static constexpr std::int64_t kMostSkipped = 16;
  static constexpr std::uint32_t kMisfits = 3;  // one after the other, and it is no walk
  static constexpr std::int64_t kShortestReading = FillAround::kBlock;
  static constexpr std::int64_t kLongestStep = 1 << 13;

  // What to ask for.
  struct Plan {
    bool write = false;  // as the walk does, also where it has met this page by a read
    std::size_t count = 0;
    std::array<PageIndex, 2 * kLargestWindow> pages{};
  };

  explicit StridedWalks(bool is_on) : is_on_(is_on) {}

  // A fault that is none of a sequential walk. `on_its_way`: the page has been asked for already.
  Plan on_fault(PageIndex page, bool write, bool on_its_way = false);

  // As those of ReadAhead: pages that are left out of the view when they arrive.
  bool is_trigger(PageIndex page) const;
  bool find_trigger(PageRun run, PageIndex* trigger) const;

 private:
  struct Seen {
    std::int64_t step = 0, page = 0;  // pages from the first one on
  };
  struct Walk {
    std::uint32_t length = 0;  // faults; 0: unused
    bool write = false;
    std::uint64_t last_use = 0;
    std::uint64_t first = 0;
    std::array<Seen, 8> seen{};  // the first fault, and a ring of the latest ones
    double step_low = 0, step_high = 0;
    double offset = 0, slack = 0;  // where in its page step 0 is, give or take
    std::int64_t at = 0;         // the step of the latest fault
    std::int64_t asked_end = 0;  // steps before it have been asked for
    std::int64_t window = 0;
    std::uint64_t trigger = 0;  // 0: none
    bool pays = false;          // it went on after a window had been opened
    std::uint32_t misfits = 0;  // latest faults near a step that are on no line with the others

    std::int64_t page_of(PageIndex page) const {
      return static_cast<std::int64_t>(page.value - first);
    }
    const Seen& latest() const { return seen[1 + (length - 2) % (seen.size() - 1)]; }
    double step() const { return (step_low + step_high) / 2; }
    double place_of(std::int64_t at_step) const;  // in pages from the first one on
    double drift_to(std::int64_t at_step) const;
    bool note(Seen one);  // false: it does not lie on a line with the others, and is left out
    // The step that the page is; -1: it is none of the next ones.
    std::int64_t find_step(std::int64_t page) const;
    bool is_beside(std::int64_t page) const;
  };

  Walk* find(PageIndex page, bool write, std::int64_t* step);
  // A walk by steps of at most so many pages; false: there is none.
  bool begin(PageIndex page, bool write, double below);
  void forget_trigger(PageIndex page);
  void open_window(Walk& walk, std::int64_t from, bool at_trigger, Plan* plan);
  Walk& place_for_another();

  bool is_on_;
  std::uint64_t uses_ = 0;
  std::uint32_t faults_before_ = kFaultsBefore;
  std::array<Walk, kWalks> walks_{};
  struct Recent {
    std::uint64_t page = 0;  // 0: none
    bool write = false;
  };
  std::array<Recent, kRecent> recent_{};  // the newest at newest_
  std::size_t newest_ = 0;
};

}  // namespace amasia::dsm
