// SPDX-License-Identifier: Apache-2.0
// Sets of bytes of a buffer.
#pragma once

#include <map>
#include <vector>

#include "base/base.hpp"

namespace amasia::devices {

// Bytes begin … end - 1.
struct Range {
  Bytes begin = 0, end = 0;
  Bytes size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Kept as ranges that neither overlap nor touch, in order.
class IntervalSet {
 public:
  bool empty() const { return ranges_.empty(); }
  void add(Range range) {
    if (range.begin >= range.end) return;
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin() && std::prev(at)->second >= range.begin) --at;
    while (at != ranges_.end() && at->first <= range.end) {
      range.begin = std::min(range.begin, at->first);
      range.end = std::max(range.end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(range.begin, range.end);
  }
  void remove(Range range) {
    if (range.begin >= range.end) return;
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin()) --at;
    while (at != ranges_.end() && at->first < range.end) {
      const Range old{at->first, at->second};
      if (old.end <= range.begin) {
        ++at;
        continue;
      }
      at = ranges_.erase(at);
      if (old.begin < range.begin) ranges_.emplace(old.begin, range.begin);
      if (old.end > range.end) at = ranges_.emplace(range.end, old.end).first;
    }
  }
  // Whether all of `range` is in the set.
  bool covers(Range range) const {
    if (range.begin >= range.end) return true;
    const auto after = ranges_.upper_bound(range.begin);
    return after != ranges_.begin() && std::prev(after)->second >= range.end;
  }
  // What of `range` is in the set, and what is not.
  std::vector<Range> common(Range range) const {
    std::vector<Range> out;
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin()) --at;
    for (; at != ranges_.end() && at->first < range.end; ++at) {
      const Range part{std::max(at->first, range.begin), std::min(at->second, range.end)};
      if (part.begin < part.end) out.push_back(part);
    }
    return out;
  }
  std::vector<Range> missing(Range range) const {
    std::vector<Range> out;
    for (const Range& there : common(range)) {
      if (range.begin < there.begin) out.push_back({range.begin, there.begin});
      range.begin = there.end;
    }
    if (range.begin < range.end) out.push_back(range);
    return out;
  }

 private:
  std::map<Bytes, Bytes> ranges_;  // begin -> end
};

}  // namespace amasia::devices
