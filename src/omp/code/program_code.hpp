// SPDX-License-Identifier: Apache-2.0
// Compiled code of the program, as it lies in memory: where a function's object begins and ends,
// and where its calls lead to. x86-64; outside of signal handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace amasia::omp {

using Byte = unsigned char;

// The object that code is in: its executable segment, and all of its memory.
class ProgramCode {
 public:
  // What `function` is in; empty, if that is no object of the process. Asks the loader.
  static ProgramCode around(const void* function);

  bool empty() const { return begin_ == nullptr; }
  bool holds(const Byte* address) const { return address >= begin_ && address < end_; }
  const Byte* end() const { return end_; }

  // The address in the table slot at `slot`; nullptr: that is outside of the object.
  const void* at_slot(const Byte* slot) const;
  // The same of the slot that an instruction with its end at `next` refers to.
  const void* slot_value(const Byte* next) const;
  // Where the stub of the procedure linkage table at `stub` leads to; nullptr: it is none.
  const void* through_stub(const Byte* stub) const;

 private:
  const Byte* begin_ = nullptr;
  const Byte* end_ = nullptr;
  const Byte* low_ = nullptr;
  const Byte* high_ = nullptr;
};

// The displacement of 32 bits at `at`.
inline std::int32_t distance_at(const Byte* at) {
  std::int32_t distance;
  std::memcpy(&distance, at, sizeof distance);
  return distance;
}

}  // namespace amasia::omp
