// SPDX-License-Identifier: Apache-2.0
#include "omp/code/thread_pointer.hpp"

#include <algorithm>
#include <cstring>

namespace amasia::omp {
namespace {

constexpr Byte kFs = 0x64;
// Between the prefix for FS and the operand: two more prefixes and an opcode of two bytes.
constexpr std::size_t kMostBefore = 4;

bool is_zero(std::span<const Byte> bytes) {
  return bytes.size() >= 4 && distance_at(bytes.data()) == 0;
}

// What follows the prefix for FS, up to a byte that says where the operand is: no base, no index,
// and a distance of 0 (ModRM with SIB, or an address of the opcodes A0 to A3).
bool may_be_at_zero(std::span<const Byte> rest) {
  for (std::size_t i = 0; i < std::min(rest.size(), kMostBefore + 2); ++i) {
    const bool is_plain = (rest[i] & 0xfc) == 0xa0;
    const bool is_sib = rest[i] == 0x25 && i > 0 && (rest[i - 1] & 0xc7) == 0x04;
    if ((is_plain || is_sib) && is_zero(rest.subspan(i + 1))) return true;
  }
  return false;
}

// rdfsbase, after its prefix: a register, perhaps of those that need one more.
bool may_be_base(std::span<const Byte> rest) {
  if (!rest.empty() && (rest[0] & 0xf0) == 0x40) rest = rest.subspan(1);
  return rest.size() >= 3 && rest[0] == 0x0f && rest[1] == 0xae && (rest[2] & 0xf8) == 0xc0;
}

bool any_follows(std::span<const Byte> code, Byte prefix, bool (*is)(std::span<const Byte>)) {
  while (!code.empty()) {
    const auto* const found =
        static_cast<const Byte*>(std::memchr(code.data(), prefix, code.size()));
    if (found == nullptr) return false;
    code = code.subspan(static_cast<std::size_t>(found - code.data()) + 1);
    if (is(code)) return true;
  }
  return false;
}

}  // namespace

bool may_read_thread_pointer(std::span<const Byte> code) {
  constexpr Byte kRepeat = 0xf3;
  return any_follows(code, kFs, may_be_at_zero) || any_follows(code, kRepeat, may_be_base);
}

}  // namespace amasia::omp
