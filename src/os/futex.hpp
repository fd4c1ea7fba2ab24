// SPDX-License-Identifier: Apache-2.0
// Sleeping on a 32-bit word until another thread wakes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::os {

// Sleeps while `word` is `expected`, for at most `timeout` (negative: for ever). May wake without
// cause. True: woken, or the word had another value already; false: the time is over. Any thread.
// `word` must lie in memory that this call cannot fault on for long: runtime memory.
bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                Nanos timeout) noexcept;
// Wakes up to `count` threads that sleep on `word`. Any thread; does not block.
void futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept;

// The same on a word in memory that several processes map (MAP_SHARED); in ordinary memory they
// work too.
bool futex_wait_shared(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       Nanos timeout) noexcept;
void futex_wake_shared(const std::atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace amasia::os
