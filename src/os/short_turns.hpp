// SPDX-License-Identifier: Apache-2.0
// Threads that compete for a core and wait for each other without giving it away, as programs do
// that spin on a flag: the scheduler lets each spin for some milliseconds before the next one has
// its turn. A thread on that core which sleeps and wakes makes turns short: when it sleeps again,
// who has run least is next. Measured, NPB-CPP's LU by gcc, two threads on one core whose loops
// that spin are not watched: above 40 s, and 10 s with turns of 200 us. Whether threads wait so is
// found out (os/turn_length).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "os/thread.hpp"

namespace amasia::os {

class ShortTurns {
 public:
  // `progress` counts what the threads pass together, and outlives this.
  explicit ShortTurns(const std::atomic<std::uint32_t>& progress) : progress_(progress) {}
  ~ShortTurns() { stop(); }
  ShortTurns(const ShortTurns&) = delete;
  ShortTurns& operator=(const ShortTurns&) = delete;

  // A thread for each of `cores`; where one cannot be had turns stay as they are. Once.
  void start(std::span<const int> cores);
  // Their end. Blocks for less than a turn.
  void stop();

 private:
  static constexpr Nanos kTurn = 200 * base::kMicrosecond;
  enum State : std::uint32_t { kLong, kShort, kStopping };
  struct Core {
    ShortTurns* all;
    int core;
    bool judges;
    Thread thread;
  };
  static void run(void* core);
  void judge();
  void follow();
  bool become(bool is_short);

  const std::atomic<std::uint32_t>& progress_;
  std::atomic<std::uint32_t> state_{kLong};  // a State, which threads sleep on
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace amasia::os
