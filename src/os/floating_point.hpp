// SPDX-License-Identifier: Apache-2.0
// How a thread rounds, treats denormal numbers and masks exceptions: the control bits of its
// floating-point units. New threads get those of the thread that makes them.
#pragma once

#include <cstdint>

namespace amasia::os {

struct FloatingPointControl {
  std::uint32_t mxcsr = 0x1f80;  // of SSE and AVX; without the flags that exceptions leave
  std::uint16_t x87 = 0x037f;
  std::uint16_t reserved = 0;
  bool operator==(const FloatingPointControl&) const = default;
};

// The calling thread's. Some ns.
inline FloatingPointControl floating_point_control() {
  constexpr std::uint32_t kFlags = 0x3f;
  FloatingPointControl control;
  asm volatile("stmxcsr %0" : "=m"(control.mxcsr));
  asm volatile("fnstcw %0" : "=m"(control.x87));
  control.mxcsr &= ~kFlags;
  return control;
}

// For the calling thread; its flags are cleared where anything changes.
inline void set_floating_point_control(const FloatingPointControl& control) {
  if (control == floating_point_control()) return;
  asm volatile("ldmxcsr %0" : : "m"(control.mxcsr));
  asm volatile("fldcw %0" : : "m"(control.x87));
}

}  // namespace amasia::os
