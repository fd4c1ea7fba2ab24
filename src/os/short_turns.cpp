// SPDX-License-Identifier: Apache-2.0
#include "os/short_turns.hpp"

#include <climits>
#include <utility>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/runtime_stack.hpp"
#include "os/turn_length.hpp"

namespace amasia::os {

void ShortTurns::start(std::span<const int> cores) {
  for (const int core : cores) {
    auto& one = cores_.emplace_back(std::make_unique<Core>(Core{this, core, cores_.empty(), {}}));
    auto started = Thread::start(run, one.get());
    if (started.ok()) one->thread = std::move(started).value();
  }
}

void ShortTurns::stop() {
  state_.store(kStopping, std::memory_order_relaxed);  // it says nothing about other memory
  futex_wake(state_, INT_MAX);
  cores_.clear();
}

void ShortTurns::run(void* core) {
  const Core& self = *static_cast<Core*>(core);
  set_thread_name("amasia-turns");
  declare_runtime_thread();
  if (!pin_to_core(self.core).ok()) return;
  use_precise_timers();
  self.judges ? self.all->judge() : self.all->follow();
}

// Relaxed, all of it: how much progress there is and which turns there are is all that matters.
void ShortTurns::judge() {
  Nanos now = monotonic_now();
  TurnLength turns(now, progress_.load(std::memory_order_relaxed));
  Nanos until = now + turns.lasts();
  while (become(turns.is_short())) {
    now = monotonic_now();
    if (now < until) {
      futex_wait(state_, turns.is_short() ? kShort : kLong,
                 turns.is_short() ? kTurn : until - now);
      continue;
    }
    turns.step(now, progress_.load(std::memory_order_relaxed));
    until = now + turns.lasts();
  }
}

void ShortTurns::follow() {
  for (;;) {
    const std::uint32_t state = state_.load(std::memory_order_relaxed);
    if (state == kStopping) return;
    futex_wait(state_, state, state == kShort ? kTurn : base::kSecond);
  }
}

// False: they are to stop.
bool ShortTurns::become(bool is_short) {
  const State other = is_short ? kLong : kShort;
  std::uint32_t expected = other;
  if (state_.compare_exchange_strong(expected, is_short ? kShort : kLong,
                                     std::memory_order_relaxed)) {
    futex_wake(state_, INT_MAX);
    return true;
  }
  return expected != kStopping;
}

}  // namespace amasia::os
