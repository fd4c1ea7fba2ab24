// SPDX-License-Identifier: Apache-2.0
#include "dsm/prefetch.hpp"

#include <algorithm>

namespace amasia::dsm {

std::size_t ReadAhead::slot_of_walk(std::uint64_t first, bool write) {
  const std::uint64_t hash = ((first * 2 + (write ? 1 : 0)) * 0x9e37'79b9'7f4a'7c15ULL) >> 32;
  return static_cast<std::size_t>(hash % kWalks);
}

PageCount ReadAhead::reach_from(PageIndex page, bool write) const {
  const Walk& walk = walks_[slot_of_walk(page.value, write)];
  return walk.first == page.value && walk.write == write ? walk.reach : 0;
}

void ReadAhead::note_reach(const Stream& stream, PageIndex page) {
  Walk& walk = walk_from(stream.first, stream.write);
  const PageCount reach = page.value + 1 - stream.first;
  if (walk.first != stream.first || walk.write != stream.write) {
    walk = Walk{.first = stream.first, .write = stream.write};
  }
  walk.reach = std::max(walk.reach, reach);
}

PageCount ReadAhead::reach_now(Walk& walk) {
  if (walk.look_out != 0) {
    walk.reach /= 2;
    walk.repeats = kRelearn - 1;  // to be looked at again
  }
  walk.look_out = 0;
  return walk.reach < 2 ? 0 : walk.reach;
}

// A fault that continues no stream, or begins one anew.
ReadAhead::Plan ReadAhead::begin(PageIndex page, bool write, PageIndex segment_end) {
  Stream& stream = oldest();
  stream = Stream{.first = page.value,
                  .ahead_end = page.value + 1,
                  .last_use = uses_,
                  .length = 1,
                  .write = write};
  Walk& walk = walk_from(page.value, write);
  if (walk.first != page.value || walk.write != write) return {};
  const PageCount reach = reach_now(walk);
  if (reach == 0) return {};
  stream.known_end = page.value + reach;
  stream.length = std::max(kReadsBeforeWindow, kWritesBeforeWindow);  // known as a walk
  const PageCount largest = write ? largest_write_ : largest_read_;
  const std::uint64_t end =
      std::min({stream.known_end, page.value + largest + 1, segment_end.value});
  stream.window = end - page.value - 1;
  stream.ahead_end = end;
  if (end == segment_end.value) stream.bound = end;
  if (end < stream.known_end) {
    stream.trigger = page.value + 1 + stream.window / 2;
  } else if (++walk.repeats % kRelearn == 0) {
    walk.look_out = stream.trigger = end - 1;
  }
  return {{PageIndex{page.value + 1}, stream.window}, stream.trigger != 0};
}

// Of a walk that comes by the page. One that has had it, while others have taken it since, is over.
ReadAhead::Stream* ReadAhead::find(PageIndex page, bool write, bool on_its_way) {
  Stream* within = nullptr;
  for (Stream& stream : streams_) {
    if (stream.ahead_end == 0 || stream.write != write) continue;
    const bool is_trigger = stream.trigger != 0 && page.value == stream.trigger;
    if (page.value == stream.ahead_end || is_trigger || page.value == stream.first) {
      return &stream;
    }
    if (on_its_way && page.value < stream.ahead_end &&
        page.value + stream.window >= stream.ahead_end) {
      within = &stream;
    }
  }
  return within;
}

ReadAhead::Stream& ReadAhead::oldest() {
  return *std::min_element(streams_.begin(), streams_.end(), [](const Stream& a, const Stream& b) {
    return a.last_use < b.last_use;
  });
}

ReadAhead::Plan ReadAhead::open_window(Stream& stream, PageIndex page, PageIndex segment_end) {
  const PageCount largest = stream.write ? largest_write_ : largest_read_;
  const bool at_trigger = page.value != stream.ahead_end;
  // At the end of the window the faulting page itself is asked for by its fault.
  const std::uint64_t first = at_trigger ? stream.ahead_end : page.value + 1;
  stream.window = std::min(stream.window == 0 ? kFirstWindow : stream.window * 2, largest);
  std::uint64_t end = std::min(first + stream.window, segment_end.value);
  const bool is_last = stream.known_end >= first && end >= stream.known_end;
  if (is_last) end = stream.known_end;
  stream.trigger = 0;
  stream.bound = end == segment_end.value ? end : 0;
  if (end <= first) {
    stream.ahead_end = std::max(stream.ahead_end, page.value + 1);
    return {};
  }
  // The walk asks again when it enters the new window, or in the middle of its first one.
  if (!is_last) stream.trigger = at_trigger ? first : first + (end - first) / 2;
  stream.ahead_end = end;
  return {{PageIndex{first}, end - first}, stream.trigger != 0};
}

ReadAhead::Plan ReadAhead::on_fault(PageIndex page, bool write, PageIndex segment_end,
                                    bool on_its_way) {
  if (largest_read_ == 0) return {};
  ++uses_;
  Stream* const stream = find(page, write, on_its_way);
  if (stream == nullptr) return begin(page, write, segment_end);
  stream->last_use = uses_;
  if (page.value == stream->first) {
    stream->last_use = 0;  // walked again: this is the place for the new walk
    stream->ahead_end = 0;
    stream->trigger = 0;
    return begin(page, write, segment_end);
  }
  const bool at_trigger = stream->trigger != 0 && page.value == stream->trigger;
  if (page.value != stream->ahead_end && !at_trigger) return {.is_followed = true};
  const bool is_followed = stream->window != 0;
  ++stream->length;
  note_reach(*stream, page);
  if (at_trigger) {
    Walk& walk = walk_from(stream->first, write);
    if (walk.look_out == page.value) walk.look_out = 0;  // it still comes as far
  }
  if (page.value == stream->known_end || page.value == stream->bound) {  // and now goes on
    stream->known_end = 0;
    stream->window = 0;
    stream->length = 1;
  }
  if (stream->length < (write ? kWritesBeforeWindow : kReadsBeforeWindow) ||
      (write && largest_write_ == 0)) {
    stream->ahead_end = page.value + 1;
    return {.is_followed = is_followed};
  }
  Plan plan = open_window(*stream, page, segment_end);
  plan.is_followed = is_followed;
  return plan;
}

bool ReadAhead::is_trigger(PageIndex page, bool write) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.trigger != 0 && stream.trigger == page.value && stream.write == write;
  });
}

bool ReadAhead::find_trigger(PageRun run, PageIndex* trigger) const {
  bool found = false;
  for (const Stream& stream : streams_) {
    if (stream.trigger == 0 || stream.trigger - run.first.value >= run.count) continue;
    if (!found || stream.trigger < trigger->value) *trigger = PageIndex{stream.trigger};
    found = true;
  }
  return found;
}

}  // namespace amasia::dsm
