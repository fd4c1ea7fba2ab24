// SPDX-License-Identifier: Apache-2.0
// Loads that a store to the same page follows: `a[i] += x` meets each page of an array that others
// have written with a read, and has to wait twice, for a copy and then to own it. A thread that has
// done so a few times in a row, at the same place of the program and in the same part of memory,
// will do so with the next page, too, which is then asked for as a writer at once. Pure.
//
// That holds for all pages of an array, where MigratoryPages knows of one page that it goes to and
// fro. By part of memory, since a region that adds to one array may only read another, which must
// stay readable on all nodes. For the same reason the store has to come soon.
// (Load-store sequences: Nilsson and Dahlgren, "Reducing ownership overhead for load-store
// sequences in cache-coherent multiprocessors", IPDPS 2000; there a bit for each block notices.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::dsm {

class LoadStore {
 public:
  static constexpr std::size_t kSpots = 1024;  // watched at a time
  static constexpr PageCount kPart = 512;      // pages of memory that one spot stands for
  static constexpr std::uint32_t kPairsUntilKnown = 2;  // in a row
  // CPU time of the thread, from the arrival of the page to the store.
  static constexpr Nanos kSoon = 100 * base::kMicrosecond;
  // A page that comes writable tells nothing any more. So after so many of them one is asked for to
  // read, and after twice as many each time that a store followed.
  static constexpr std::uint32_t kFirstTrust = 2, kMostTrust = 32;

  // The thread, at the place of the program (0: none is known, and nothing is learned), waits to
  // read a page that is not here. True: ask for it as a writer.
  bool on_load(std::uint64_t place, std::int32_t thread_id, PageIndex page);
  // Whether the next load there is likely to be followed by a store.
  bool expects_store(std::uint64_t place, std::int32_t thread_id, PageIndex page);
  // It waits to write one of which there is a read copy; `used`: its CPU time since that came.
  void on_store(std::uint64_t place, std::int32_t thread_id, PageIndex page, Nanos used);

 private:
  // A part of memory, as a thread meets it at a place.
  struct Spot {
    std::uint64_t place = 0;  // 0: unused
    std::uint64_t part = 0;
    std::int32_t thread_id = 0;
    std::uint32_t pairs = 0;  // of a load and then a store, in a row
    std::uint32_t trust = kFirstTrust;
    std::uint32_t asked = 0;   // as a writer, since the last pair
    std::uint64_t loaded = 0;  // the last page, until its store
    bool awaits_store = false;
  };
  static void forget(Spot& spot);
  Spot& spot_of(std::uint64_t place, std::int32_t thread_id, PageIndex page);

  std::array<Spot, kSpots> spots_{};
};

}  // namespace amasia::dsm
