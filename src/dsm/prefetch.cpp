// SPDX-License-Identifier: Apache-2.0
#include "dsm/prefetch.hpp"

#include <algorithm>

namespace amasia::dsm {

ReadAhead::Stream* ReadAhead::find(PageIndex page, bool write) {
  for (Stream& stream : streams_) {
    if (stream.ahead_end == 0 || stream.write != write) continue;
    // Also inside the window: its pages were given away again, or the fault came before the data.
    if (page.value <= stream.ahead_end && page.value + stream.window >= stream.ahead_end) {
      return &stream;
    }
  }
  return nullptr;
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
  const std::uint64_t end = std::min(first + stream.window, segment_end.value);
  stream.trigger = 0;
  if (end <= first) {
    stream.ahead_end = std::max(stream.ahead_end, page.value + 1);
    return {};
  }
  // The walk asks again when it enters the new window, or in the middle of its first one.
  stream.trigger = at_trigger ? first : first + (end - first) / 2;
  stream.ahead_end = end;
  return {{PageIndex{first}, end - first}, stream.trigger != 0};
}

ReadAhead::Plan ReadAhead::on_fault(PageIndex page, bool write, PageIndex segment_end) {
  if (largest_read_ == 0) return {};
  ++uses_;
  Stream* stream = find(page, write);
  if (stream == nullptr) {
    stream = &oldest();
    *stream = Stream{.ahead_end = page.value + 1, .length = 1, .write = write};
    stream->last_use = uses_;
    return {};
  }
  stream->last_use = uses_;
  const bool continues = page.value == stream->ahead_end || page.value == stream->trigger;
  if (!continues) return {};
  ++stream->length;
  if (stream->length < (write ? kWritesBeforeWindow : kReadsBeforeWindow) ||
      (write && largest_write_ == 0)) {
    stream->ahead_end = page.value + 1;
    return {};
  }
  return open_window(*stream, page, segment_end);
}

bool ReadAhead::is_trigger(PageIndex page, bool write) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.trigger == page.value && stream.write == write;
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
