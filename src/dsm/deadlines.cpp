// SPDX-License-Identifier: Apache-2.0
#include "dsm/deadlines.hpp"

#include <limits>

namespace amasia::dsm {
namespace {

std::size_t hash(std::uint64_t page) {
  return static_cast<std::size_t>((page * 0x9e37'79b9'7f4a'7c15ULL) >> 32);
}

}  // namespace

Result<Deadlines> Deadlines::make() {
  auto heap = os::ReservedArray<Entry>::make(kCapacity);
  if (!heap.ok()) return heap.error();
  auto table = os::ReservedArray<std::uint32_t>::make(kBuckets);
  if (!table.ok()) return table.error();
  Deadlines made;
  made.heap_ = std::move(heap).value();
  made.table_ = std::move(table).value();
  return made;
}

// The bucket that points to the page's entry, or the empty one where it would go.
std::size_t Deadlines::find_bucket(PageIndex page) const {
  std::size_t bucket = hash(page.value) % kBuckets;
  while (table_[bucket] != kNone && heap_[table_[bucket] - 1].page != page.value) {
    bucket = (bucket + 1) % kBuckets;
  }
  return bucket;
}

void Deadlines::place(std::size_t at, const Entry& entry) {
  heap_[at] = entry;
  table_[entry.bucket] = static_cast<std::uint32_t>(at + 1);
}

void Deadlines::sift_up(std::size_t at, const Entry& entry) {
  while (at > 0 && heap_[(at - 1) / 2].when > entry.when) {
    place(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(at, entry);
}

void Deadlines::sift_down(std::size_t at, const Entry& entry) {
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= size_) break;
    if (child + 1 < size_ && heap_[child + 1].when < heap_[child].when) ++child;
    if (heap_[child].when >= entry.when) break;
    place(at, heap_[child]);
    at = child;
  }
  place(at, entry);
}

bool Deadlines::set(PageIndex page, Nanos when) {
  const std::size_t bucket = find_bucket(page);
  if (table_[bucket] != kNone) remove_at(table_[bucket] - 1);
  if (size_ == kCapacity) return false;
  sift_up(size_++, Entry{page.value, when, find_bucket(page)});
  return true;
}

void Deadlines::remove(PageIndex page) {
  const std::uint32_t found = find(page);
  if (found != kNone) remove_at(found - 1);
}

void Deadlines::remove_at(std::size_t at) {
  erase_bucket(heap_[at].bucket);
  const Entry last = heap_[--size_];
  if (at == size_) return;
  if (at > 0 && heap_[(at - 1) / 2].when > last.when) {
    sift_up(at, last);
  } else {
    sift_down(at, last);
  }
}

// Linear probing without tombstones: entries behind the hole that belong before it move up.
void Deadlines::erase_bucket(std::size_t bucket) {
  std::size_t hole = bucket;
  for (std::size_t next = (hole + 1) % kBuckets; table_[next] != kNone;
       next = (next + 1) % kBuckets) {
    Entry& entry = heap_[table_[next] - 1];
    const std::size_t wanted = hash(entry.page) % kBuckets;
    if ((next - wanted) % kBuckets < (next - hole) % kBuckets) continue;
    table_[hole] = table_[next];
    entry.bucket = hole;
    hole = next;
  }
  table_[hole] = kNone;
}

Nanos Deadlines::next() const {
  return size_ == 0 ? std::numeric_limits<Nanos>::max() : heap_[0].when;
}

bool Deadlines::pop(Nanos now, PageIndex* page) {
  if (size_ == 0 || heap_[0].when > now) return false;
  *page = PageIndex{heap_[0].page};
  remove_at(0);
  return true;
}

}  // namespace amasia::dsm
