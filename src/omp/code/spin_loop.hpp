// SPDX-License-Identifier: Apache-2.0
// Loops in the program's code that do nothing until another thread writes what they read: spinning
// on a flag. Found by what is around an instruction of one; x86-64.
#pragma once

#include <cstdint>
#include <optional>

#include "omp/code/program_code.hpp"

namespace amasia::omp {

// It has one way back, which ends it.
struct SpinLoop {
  static constexpr std::uint8_t kAlways = 16;

  const Byte* begin = nullptr;
  const Byte* branch = nullptr;      // the jump back
  const Byte* next = nullptr;        // the instruction behind it
  std::uint8_t condition = kAlways;  // on which it jumps, as instructions encode it
};

// Whether the jump is taken, by the processor's flags. Safe in signal handlers.
bool jumps_back(const SpinLoop& loop, std::uint64_t flags) noexcept;

// The loop that the instruction at `at` belongs to, if it is one whose rounds are all alike: it
// writes no memory, calls nothing, and no round begins with what another one has computed. nullopt:
// none, or that is not plain to see. Asks the loader; outside of signal handlers.
std::optional<SpinLoop> spin_loop_at(const Byte* at);
// The same where the code that it belongs to is known; nullopt outside of that. Safe in signal
// handlers.
std::optional<SpinLoop> spin_loop_at(const Byte* at, const ProgramCode& code) noexcept;

}  // namespace amasia::omp
