// SPDX-License-Identifier: Apache-2.0
// Pages that nodes use in turns, each reading first and then writing: a counter in a critical
// section, a sum that all add to. Each turn costs two remote faults, a read and an upgrade. Once a
// node has seen itself do so, it asks for the page as a writer when it reads. Only if the write
// comes soon after: what all nodes read at the begin of a region and write at its end must stay
// readable on all of them in between. (Cox and Fowler, "Adaptive cache coherency for detecting
// migratory shared data", ISCA 1993; there the directory notices, here each node for itself, and
// the protocol stays as it is.) Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::dsm {

class MigratoryPages {
 public:
  static constexpr std::size_t kPages = 1024;           // watched at a time
  static constexpr std::uint32_t kTurnsUntilKnown = 2;  // in a row
  // From the read fault to the upgrade; a remote fault takes 30 us and more of it.
  static constexpr Nanos kSoon = 150 * base::kMicrosecond;
  // A page that comes writable tells nothing any more, so now and then it is asked for as before.
  static constexpr std::uint32_t kRelearn = 32;

  // A read fault on a page that is not here. True: ask for it as a writer.
  bool on_read_fault(PageIndex page, Nanos now);
  // A write fault on a page of which there is a read copy.
  void on_upgrade(PageIndex page, Nanos now);

 private:
  static constexpr Nanos kNotRead = -1;
  struct Entry {
    std::uint64_t page = 0;
    std::uint32_t turns = 0;  // of read and then upgrade, in a row
    std::uint32_t asked = 0;  // as a writer
    bool used = false;
    Nanos read_at = kNotRead;  // since the last upgrade
  };
  Entry& entry_of(PageIndex page);

  std::array<Entry, kPages> entries_{};
};

}  // namespace amasia::dsm
