// SPDX-License-Identifier: Apache-2.0
#include "dsm/migratory.hpp"

namespace amasia::dsm {

MigratoryPages::Entry& MigratoryPages::entry_of(PageIndex page) {
  return entries_[((page.value * 0x9e37'79b9'7f4a'7c15ULL) >> 32) % kPages];
}

bool MigratoryPages::on_read_fault(PageIndex page, Nanos now) {
  Entry& entry = entry_of(page);
  if (!entry.used || entry.page != page.value) return false;
  if (entry.read_at != kNotRead) entry.turns = 0;  // the last one was not followed by a write
  if (entry.turns >= kTurnsUntilKnown) {
    if (++entry.asked % kRelearn != 0) return true;
    entry.turns = kTurnsUntilKnown - 1;
  }
  entry.read_at = now;
  return false;
}

void MigratoryPages::on_upgrade(PageIndex page, Nanos now) {
  Entry& entry = entry_of(page);
  if (!entry.used || entry.page != page.value) {
    entry = Entry{.page = page.value, .used = true};
    return;
  }
  if (entry.read_at != kNotRead) entry.turns = now - entry.read_at <= kSoon ? entry.turns + 1 : 0;
  entry.read_at = kNotRead;
}

}  // namespace amasia::dsm
