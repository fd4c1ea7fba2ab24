// SPDX-License-Identifier: Apache-2.0
// GOMP entry points inside doacross loops. Iterations are named by their numbers in each loop of
// the nest, from 0.
#include <array>
#include <cstdarg>

#include "omp/abi/gomp.hpp"
#include "omp/work_sharing/doacross.hpp"

namespace amasia::omp::gomp {
namespace {

using Ull = unsigned long long;

// A wait is variadic: libgomp reads as many numbers as its loop has. So must whoever passes the
// call down; a nest is not deeper than this.
constexpr std::size_t kDeepest = 16;
using Numbers = std::array<std::int64_t, kDeepest>;

void post(ThreadFrame& frame, const std::int64_t* numbers) {
  frame.team->node().doacross()->post(frame, {numbers, Doacross::depth(frame)});
}

template <typename T>
Numbers read_numbers(const ThreadFrame& frame, T first, std::va_list list) {
  Numbers numbers{static_cast<std::int64_t>(first)};
  AMASIA_CHECK(Doacross::depth(frame) <= kDeepest, "a nest has at most 16 loops");
  for (std::size_t i = 1; i < Doacross::depth(frame); ++i) {
    numbers[i] = static_cast<std::int64_t>(va_arg(list, T));
  }
  return numbers;
}

void wait(ThreadFrame& frame, const Numbers& numbers) {
  frame.team->node().doacross()->wait(frame, {numbers.data(), Doacross::depth(frame)});
}

}  // namespace

AMASIA_ENTRY void GOMP_doacross_post(long* numbers) {
  static constinit Real<void(long*)> real{"GOMP_doacross_post"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(numbers);
  post(*frame, numbers);
}

AMASIA_ENTRY void GOMP_doacross_ull_post(Ull* numbers) {
  static constinit Real<void(Ull*)> real{"GOMP_doacross_ull_post"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(numbers);
  post(*frame, reinterpret_cast<const std::int64_t*>(numbers));
}

// The arguments of a call that is passed down are those of the widest nest: what the caller did not
// give is not read.
#define AMASIA_DOACROSS_WAIT(NAME, T)                                                            \
  AMASIA_ENTRY void NAME(T first, ...) {                                                         \
    using Wait = void (*)(T, ...);                                                               \
    static constinit Real<void()> real{#NAME};                                                   \
    std::va_list list;                                                                           \
    va_start(list, first);                                                                       \
    ThreadFrame* const frame = current_frame();                                                  \
    if (frame != nullptr) {                                                                      \
      wait(*frame, read_numbers<T>(*frame, first, list));                                        \
    } else {                                                                                     \
      std::array<T, kDeepest> n{first};                                                          \
      for (std::size_t i = 1; i < n.size(); ++i) n[i] = va_arg(list, T);                         \
      reinterpret_cast<Wait>(real.get())(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8],   \
                                         n[9], n[10], n[11], n[12], n[13], n[14], n[15]);        \
    }                                                                                            \
    va_end(list);                                                                                \
  }
AMASIA_DOACROSS_WAIT(GOMP_doacross_wait, long)
AMASIA_DOACROSS_WAIT(GOMP_doacross_ull_wait, Ull)

}  // namespace amasia::omp::gomp
