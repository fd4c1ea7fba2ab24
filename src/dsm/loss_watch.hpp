// SPDX-License-Identifier: Apache-2.0
// How long threads wait for pages that this node had, and other nodes have taken since a moment.
// Data that come to stay are waited for once; this is for what goes to and fro, and will go on to.
//
// field   | written by                     | read by | ordered by
// watch_  | begin(), any thread            | all     | relaxed: it names a moment, roughly
// lost_in_| note_loss(), the engine's lock | same    | the lock
// stall_  | add_wait(), the engine's lock  | all     | relaxed: a measure
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/base.hpp"
#include "dsm/address_space.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

class LossWatch {
 public:
  Status reserve(PageCount pages) {
    auto made = os::ReservedArray<std::uint8_t>::make(pages);
    if (!made.ok()) return made.error();
    lost_in_ = std::move(made).value();
    return base::ok();
  }

  // What was lost before no longer counts. Any thread.
  void begin() { watch_.fetch_add(1, std::memory_order_relaxed); }
  Nanos stall() const { return stall_.load(std::memory_order_relaxed); }

  // The node has lost these pages, or the right to write them.
  void note_loss(PageRun run) {
    const std::uint8_t watch = watch_.load(std::memory_order_relaxed);
    if (watch == 0) return;
    for (PageCount i = 0; i < run.count; ++i) lost_in_[run.first.value + i] = watch;
  }
  bool was_lost(PageIndex page) const {
    const std::uint8_t watch = watch_.load(std::memory_order_relaxed);
    return watch != 0 && lost_in_[page.value] == watch;
  }
  // A thread has waited for such a page.
  void add_wait(Nanos waited) { stall_.store(stall() + waited, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint8_t> watch_{0};  // 0: nothing is watched
  // In which watch; wraps around, so that what was lost long ago may be taken for lost now.
  os::ReservedArray<std::uint8_t> lost_in_;
  std::atomic<Nanos> stall_{0};
};

}  // namespace amasia::dsm
