// SPDX-License-Identifier: Apache-2.0
#include "os/short_turns.hpp"

#include <climits>
#include <utility>

#include "os/futex.hpp"
#include "os/runtime_stack.hpp"

namespace amasia::os {

void ShortTurns::start(std::span<const int> cores) {
  for (const int core : cores) {
    auto& one = cores_.emplace_back(std::make_unique<Core>(Core{this, core, {}}));
    auto started = Thread::start(run, one.get());
    if (started.ok()) one->thread = std::move(started).value();
  }
}

void ShortTurns::stop() {
  stopping_.store(1, std::memory_order_relaxed);  // it says nothing about other memory
  futex_wake(stopping_, INT_MAX);
  cores_.clear();
}

void ShortTurns::run(void* core) {
  const Core& self = *static_cast<Core*>(core);
  ShortTurns& all = *self.all;
  set_thread_name("amasia-turns");
  declare_runtime_thread();
  if (!pin_to_core(self.core).ok()) return;
  use_precise_timers();
  // Relaxed: whether it changes is all that matters.
  std::uint32_t seen = all.progress_.load(std::memory_order_relaxed) - 1;
  while (all.stopping_.load(std::memory_order_relaxed) == 0) {
    const std::uint32_t now = all.progress_.load(std::memory_order_relaxed);
    futex_wait(all.stopping_, 0, std::exchange(seen, now) != now ? kPatience : kTurn);
  }
}

}  // namespace amasia::os
