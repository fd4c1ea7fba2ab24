// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/thread_state.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <memory>
#include <thread>

namespace amasia::omp {
namespace {

constexpr std::size_t kStackSize = 64 << 10;

struct Journey {
  alignas(64) std::byte stack[kStackSize];
  ThreadState home;       // of the thread that begins
  ThreadState departure;  // within the function
  ThreadState guest;      // of the thread that ends
  EntryFrame* entry = nullptr;
  std::thread::id began, ended;
  double sum = 0;
  int rounding = 0;

  std::byte* top() { return stack + kStackSize; }
};

// The compiler may take a thread to be the same throughout a function.
[[gnu::noinline]] std::thread::id this_thread() {
  asm volatile("");
  return std::this_thread::get_id();
}

// Leaves the first thread in the middle, with values in registers and on the stack.
[[gnu::noinline]] void leave(Journey& journey, std::byte* native) {
  amasia_switch(
      native, [](void* it) { amasia_resume(&static_cast<Journey*>(it)->home); }, &journey,
      &journey.departure);
}

void work(void* first, void* second) {
  Journey& journey = *static_cast<Journey*>(first);
  journey.began = this_thread();
  std::fesetround(FE_UPWARD);
  double values[100];
  for (int i = 0; i < 100; ++i) values[i] = i;
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
  leave(journey, static_cast<std::byte*>(second));
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
  for (const double value : values) journey.sum += value;
  journey.sum += static_cast<double>(a + b + c + d + e);
  journey.rounding = std::fegetround();
  journey.ended = this_thread();
}

// A function begins on one thread and ends on another one, which then goes on with its own.
TEST(ThreadState, AnotherThreadGoesOn) {
  const auto journey = std::make_unique<Journey>();
  const auto native = std::make_unique<std::byte[]>(kStackSize);
  bool left = false;
  struct Start {
    Journey* journey;
    std::byte* native;
  } start{journey.get(), native.get() + kStackSize};
  amasia_switch(
      journey->top(),
      [](void* it) {
        const Start& given = *static_cast<Start*>(it);
        amasia_enter(reinterpret_cast<void*>(work), given.journey, given.native,
                     &given.journey->entry);
        FAIL() << "it ends elsewhere";
      },
      &start, &journey->home);
  left = true;
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(journey->sum, 0) << "it has not gone on yet";
  bool returned = false;
  std::thread guest([&] {
    direct_home(*journey->entry, journey->guest);
    const auto own = std::make_unique<std::byte[]>(kStackSize);
    amasia_switch(
        own.get() + kStackSize,
        [](void* it) { amasia_resume(&static_cast<Journey*>(it)->departure); }, journey.get(),
        &journey->guest);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    returned = true;
  });
  const std::thread::id guest_id = guest.get_id();
  guest.join();
  EXPECT_TRUE(left && returned);
  EXPECT_EQ(journey->began, std::this_thread::get_id());
  EXPECT_EQ(journey->ended, guest_id);
  EXPECT_EQ(journey->sum, 99 * 100 / 2 + 15);
  EXPECT_EQ(journey->rounding, FE_UPWARD) << "it is the function's";
}

}  // namespace
}  // namespace amasia::omp
