// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/own_addresses.hpp"

#include <ctype.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace amasia::omp {
namespace {

// What the functions that are declared to return the same each time return, for this thread: turned
// over, so that this leaves nothing on the stack which a later look would find.
std::array<std::uintptr_t, 5> own_addresses_turned() noexcept {
  const auto of = [](const void* address) {
    auto word = reinterpret_cast<std::uintptr_t>(address);
    asm volatile("notq %0" : "+r"(word));
    return word;
  };
  return {of(&errno), of(&h_errno), of(__ctype_b_loc()), of(__ctype_tolower_loc()),
          of(__ctype_toupper_loc())};
}

}  // namespace

// Not for inlining: what it compares with is not to be where it looks.
[[gnu::noinline]] bool has_own_address(std::span<const std::uintptr_t> words) noexcept {
  const std::array own = own_addresses_turned();
  return std::ranges::any_of(
      words, [&own](std::uintptr_t word) { return std::ranges::find(own, ~word) != own.end(); });
}

// Not for inlining: what it has not changed of the caller's registers it looks at, and the rest it
// has put on its stack.
[[gnu::noinline]] bool keeps_own_address(const void* end) noexcept {
  std::array<std::uintptr_t, 6> registers;
  const std::uintptr_t* from;
  asm volatile(
      "movq %%rbx, 0(%[to])\n\t"
      "movq %%rbp, 8(%[to])\n\t"
      "movq %%r12, 16(%[to])\n\t"
      "movq %%r13, 24(%[to])\n\t"
      "movq %%r14, 32(%[to])\n\t"
      "movq %%r15, 40(%[to])\n\t"
      "movq %%rsp, %[from]"
      : [from] "=&r"(from)
      : [to] "r"(registers.data())
      : "memory");
  const auto* const to = static_cast<const std::uintptr_t*>(end);
  const bool found = has_own_address(registers) || (from < to && has_own_address({from, to}));
  asm volatile("" : : : "memory");  // after a call: the other function's frame is not in our place
  return found;
}

}  // namespace amasia::omp
