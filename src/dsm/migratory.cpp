// SPDX-License-Identifier: Apache-2.0
#include "dsm/migratory.hpp"

namespace amasia::dsm {

MigratoryPages::Entry& MigratoryPages::entry_of(PageIndex page) {
  return entries_[((page.value * 0x9e37'79b9'7f4a'7c15ULL) >> 32) % kPages];
}

bool MigratoryPages::on_read_fault(PageIndex page) {
  Entry& entry = entry_of(page);
  if (!entry.used || entry.page != page.value) return false;
  if (entry.has_read) entry.turns = 0;  // the last one was not followed by a write
  if (entry.turns >= kTurnsUntilKnown) {
    if (++entry.asked % kRelearn != 0) return true;
    entry.turns = kTurnsUntilKnown - 1;
  }
  entry.has_read = true;
  return false;
}

void MigratoryPages::on_upgrade(PageIndex page) {
  Entry& entry = entry_of(page);
  if (!entry.used || entry.page != page.value) {
    entry = Entry{.page = page.value, .turns = 1, .used = true};
    return;
  }
  if (entry.has_read) ++entry.turns;
  entry.has_read = false;
}

}  // namespace amasia::dsm
