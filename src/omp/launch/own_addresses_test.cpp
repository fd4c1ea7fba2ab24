// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/own_addresses.hpp"

#include <ctype.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

namespace amasia::omp {
namespace {

std::uintptr_t address_of(const void* it) { return reinterpret_cast<std::uintptr_t>(it); }

TEST(OwnAddresses, OfWhatTheCLibraryHasForEachThread) {
  int local = 0;
  static int shared = 0;
  const auto has = [](std::uintptr_t word) {
    return has_own_address(std::array<std::uintptr_t, 3>{1, word, 2});
  };
  EXPECT_TRUE(has(address_of(&errno)));
  EXPECT_TRUE(has(address_of(__ctype_b_loc())));
  EXPECT_TRUE(has(address_of(__ctype_toupper_loc())));
  EXPECT_FALSE(has(address_of(&local)));
  EXPECT_FALSE(has(address_of(&shared)));
  EXPECT_FALSE(has(address_of(*__ctype_b_loc()))) << "the table is all threads'";
  EXPECT_FALSE(has(0));
  const int* of_another = nullptr;
  std::thread([&of_another] { of_another = &errno; }).join();
  EXPECT_FALSE(has(address_of(of_another)));
}

// What `function` keeps, from its own frame on.
template <typename Function>
[[gnu::noinline]] bool found_in(Function function) {
  return function(__builtin_frame_address(0));
}

TEST(OwnAddresses, OnTheStack) {
  // First the one that has none: what has been on the stack before may still lie there.
  EXPECT_FALSE(found_in([](const void* end) {
    int other = 0;
    int* volatile own = &other;
    const bool found = keeps_own_address(end);
    *own = 0;
    return found;
  }));
  EXPECT_TRUE(found_in([](const void* end) {
    int* volatile own = &errno;
    const bool found = keeps_own_address(end);
    *own = 0;
    return found;
  }));
}

// Looks from below `size` bytes that it has not written, as frames of functions have them.
[[gnu::noinline]] bool look_below(const void* end, std::size_t size) {
  volatile auto* const hole = static_cast<std::byte*>(__builtin_alloca(size));
  const bool found = keeps_own_address(end);
  hole[0] = std::byte{0};
  return found;
}

TEST(OwnAddresses, NotWhatALookHasLeftItself) {
  EXPECT_FALSE(found_in([](const void* end) {
    bool found = false;
    for (std::size_t size = 64; size <= 4096; size += 512) found |= look_below(end, size);
    return found;
  }));
}

#if defined(__x86_64__)
TEST(OwnAddresses, InARegisterThatACallKeeps) {
  EXPECT_TRUE(found_in([](const void* end) {
    int* own = &errno;
    std::uint8_t found = 0;
    // In r12 alone while it is called, below what this function may have beneath its stack pointer.
    asm volatile(
        "movq %[own], %%r12\n\t"
        "xorl %k[own], %k[own]\n\t"
        "movq %%rsp, %%r13\n\t"
        "subq $256, %%rsp\n\t"
        "andq $-16, %%rsp\n\t"
        "call *%[look]\n\t"
        "movq %%r13, %%rsp"
        : [own] "+b"(own), "=a"(found), "+D"(end)
        : [look] "r"(&keeps_own_address)
        : "r12", "r13", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return found != 0;
  }));
}
#endif

}  // namespace
}  // namespace amasia::omp
