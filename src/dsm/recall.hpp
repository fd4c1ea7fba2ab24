// SPDX-License-Identifier: Apache-2.0
// What a place of the program waited for the last times: a region or a loop that is executed again
// and again meets the same few pages that others have written in between (its arguments, borders,
// centres, sums), one fault after the other. So they are asked for together when the place is
// entered, while the thread does something else. Pure.
//
//   fault at a place            a need of it     asked for at a later entry, if then
//   read, the page is not here  to read          it is not here
//   write, a copy is here       to own           a read copy is here
//
// Programs take turns with two arrays, so a need has a period: the number of entries between two
// faults, after which it is asked for again. What was asked for and yet is missed before the place
// is left went to and fro in vain: it is not asked for during the next kBan entries, twice as many
// each time. Nobody sees whether what was asked for is used; so each need is forgotten after
// kRelearn requests, and costs a fault again.
//
// (Prefetching by the history of a synchronisation point: Karlsson and Stenström, "Effectiveness of
// dynamic prefetching in multiple-writer distributed virtual shared memory systems", JPDC 1997.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"
#include "dsm/address_space.hpp"

namespace amasia::dsm {

class Recall {
 public:
  static constexpr std::size_t kPlaces = 256;  // remembered; an older one makes room
  static constexpr std::size_t kNeeds = 64;    // of each
  static constexpr std::uint32_t kLongestPeriod = 4;
  static constexpr std::uint32_t kRelearn = 32;
  static constexpr std::uint32_t kIdle = 16;  // more than a period, and less than a ban
  static constexpr std::uint32_t kBan = 32;
  static constexpr std::uint32_t kMostBans = 8;  // doublings

  enum class Want : std::uint8_t { kRead, kOwn };

  // The node has come to the place, which is not 0. `ask` is called as ask(page, Want) for each
  // page that may be worth asking for, and returns whether it has asked. False: nothing has been
  // asked for since long, so that entries need not be told before the next fault at the place.
  template <typename Ask>
  bool enter(std::uint64_t place, const Ask& ask) {
    Memory& memory = memory_of(place);
    ++memory.entries;
    for (Need& need : memory.needs) {
      if (is_due(memory, need) && ask(PageIndex{need.page}, need.want)) note_request(memory, need);
    }
    return ++memory.idle <= kIdle;
  }
  // A fault of this node while it was at the place (0: at none, where nothing is remembered): on a
  // page that is not here (kRead), or on a read copy (kOwn).
  void on_fault(std::uint64_t place, PageIndex page, Want want);

  // Places of one slot cannot be remembered at once.
  static std::size_t slot_of(std::uint64_t place);

 private:
  struct Need {
    std::uint64_t page = 0;
    std::uint32_t last = 0;    // the entry of the last fault, or when it was due; 0: free
    std::uint32_t period = 0;  // 0: not known
    std::uint32_t asked = 0;   // the entry in which it was asked for last
    std::uint32_t asks = 0;    // since the period was learned
    std::uint32_t bans = 0;
    std::uint32_t banned_until = 0;  // the first entry in which it is asked for again
    Want want = Want::kRead;
  };
  struct Memory {
    std::uint64_t place = 0;
    std::uint32_t entries = 1;
    std::uint32_t idle = 0;  // entries since the last fault or request
    std::array<Need, kNeeds> needs{};
  };

  Memory& memory_of(std::uint64_t place);
  static bool is_due(const Memory& memory, Need& need);
  static void note_request(Memory& memory, Need& need);
  static void ban(const Memory& memory, Need& need);

  std::array<Memory, kPlaces> memories_{};
};

}  // namespace amasia::dsm
