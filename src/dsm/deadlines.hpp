// SPDX-License-Identifier: Apache-2.0
// Pages to look at again at a given time: one deadline a page, found by page and by time.
#pragma once

#include <cstdint>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

// A binary heap by time, and a hash table from page to place in the heap. Fixed capacity.
class Deadlines {
 public:
  static constexpr std::size_t kCapacity = std::size_t{1} << 16;

  static Result<Deadlines> make();

  // Sets or moves the deadline of a page. False: there is no room.
  bool set(PageIndex page, Nanos when);
  void remove(PageIndex page);
  bool contains(PageIndex page) const { return find(page) != kNone; }
  std::size_t size() const { return size_; }
  // Of the i-th one, in no order; i < size().
  PageIndex page_at(std::size_t i) const { return PageIndex{heap_[i].page}; }
  // Of the earliest one; the largest time when there is none.
  Nanos next() const;
  // Takes the earliest one out if it is due.
  bool pop(Nanos now, PageIndex* page);

 private:
  struct Entry {
    std::uint64_t page = 0;
    Nanos when = 0;
    std::size_t bucket = 0;  // of the table, that points here
  };
  static constexpr std::size_t kBuckets = 2 * kCapacity;  // half empty at most
  static constexpr std::uint32_t kNone = 0;               // table entries are place + 1

  std::size_t find_bucket(PageIndex page) const;
  std::uint32_t find(PageIndex page) const { return table_[find_bucket(page)]; }
  void place(std::size_t at, const Entry& entry);
  void sift_up(std::size_t at, const Entry& entry);
  void sift_down(std::size_t at, const Entry& entry);
  void erase_bucket(std::size_t bucket);
  void remove_at(std::size_t at);

  std::size_t size_ = 0;
  os::ReservedArray<Entry> heap_;
  os::ReservedArray<std::uint32_t> table_;
};

}  // namespace amasia::dsm
