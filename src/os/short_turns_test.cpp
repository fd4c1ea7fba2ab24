// SPDX-License-Identifier: Apache-2.0
#include "os/short_turns.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "os/os.hpp"

namespace amasia::os {
namespace {

// How often two threads on one core hand a flag to and fro in `time`, each spinning for it.
std::uint32_t hand_over(int core, Nanos time, std::atomic<std::uint32_t>& handed) {
  const Nanos end = monotonic_now() + time;
  std::atomic<bool> ended{false};
  const auto take_part = [&](std::uint32_t side) {
    EXPECT_TRUE(pin_to_core(core).ok());
    while (monotonic_now() < end) {
      while (handed.load() % 2 != side && !ended) {
      }
      if (!ended) ++handed;
    }
    ended = true;
  };
  std::jthread one(take_part, 0), other(take_part, 1);
  one.join();
  other.join();
  return handed.exchange(0);
}

TEST(ShortTurns, ThreadsThatSpinOnOneCoreGetFurther) {
  const std::vector<int> cores = allowed_cores();
  constexpr Nanos kTime = base::kSecond / 2;
  std::atomic<std::uint32_t> handed{0};
  const std::uint32_t plainly = hand_over(cores.front(), kTime, handed);
  ShortTurns turns(handed);
  turns.start(std::span(cores).first(1));
  const std::uint32_t in_turns = hand_over(cores.front(), kTime, handed);
  turns.stop();
  EXPECT_GT(in_turns, plainly * 3 / 2) << plainly;
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
