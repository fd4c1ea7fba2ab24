// SPDX-License-Identifier: Apache-2.0
#include "os/short_turns.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "os/os.hpp"

namespace amasia::os {
namespace {

// How long two threads on one core take to hand a flag to and fro, each spinning for it.
Nanos hand_over(int core) {
  constexpr int kTimes = 40;
  std::atomic<int> turn{0};
  const auto take_part = [&](int side) {
    EXPECT_TRUE(pin_to_core(core).ok());
    for (int i = 0; i < kTimes; ++i) {
      while (turn.load() != side) {
      }
      turn.store(1 - side);
    }
  };
  const Nanos begin = monotonic_now();
  std::jthread one(take_part, 0), other(take_part, 1);
  one.join();
  other.join();
  return monotonic_now() - begin;
}

TEST(ShortTurns, ThreadsThatSpinOnOneCoreWaitLess) {
  const std::vector<int> cores = allowed_cores();
  const Nanos plainly = hand_over(cores.front());
  const std::atomic<std::uint32_t> none{0};
  ShortTurns turns(none);
  turns.start(std::span(cores).first(1));
  const Nanos in_turns = hand_over(cores.front());
  turns.stop();
  EXPECT_LT(in_turns, plainly);
}

TEST(ShortTurns, EndsAtOnce) {
  std::atomic<std::uint32_t> none{0};
  for (int i = 0; i < 20; ++i) {
    ShortTurns turns(none);
    turns.start(allowed_cores());
  }
}

}  // namespace
}  // namespace amasia::os
