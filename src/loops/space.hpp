// SPDX-License-Identifier: Apache-2.0
// From loop bounds of any integer type to iteration numbers and back.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/base.hpp"

namespace amasia::loops {

// A run of iteration numbers, begin included, end not. Empty when begin == end.
struct Iterations {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  constexpr bool empty() const { return begin == end; }
  constexpr std::uint64_t size() const { return end - begin; }
  friend constexpr bool operator==(const Iterations&, const Iterations&) = default;
};

// A loop's iteration space. Iteration i has the value  first + i * step  in arithmetic modulo 2^64,
// cut to the loop variable's type: signed types are kept sign-extended, so this is exact for all.
struct Space {
  std::uint64_t first = 0;
  std::uint64_t step = 1;
  std::uint64_t count = 0;

  friend constexpr bool operator==(const Space&, const Space&) = default;
};

namespace detail {
// Widens to 64 bits with the type's own signedness; the result's bits are all that is used.
template <std::integral T>
constexpr std::uint64_t widened(T value) {
  return static_cast<std::uint64_t>(
      static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(value));
}
// ceil(distance / magnitude), without the sum that could overflow.
constexpr std::uint64_t steps_within(std::uint64_t distance, std::uint64_t magnitude) {
  return distance == 0 ? 0 : (distance - 1) / magnitude + 1;
}
}  // namespace detail

// The loop  for (i = start; up ? i < end : i > end; i += step) , as libgomp's calls give it. For
// unsigned types a falling step is its two's complement and `up` is false.
template <std::integral T>
constexpr Space space_until(T start, T end, bool up, std::uint64_t step) {
  AMASIA_CHECK(step != 0, "a loop needs a step");
  const std::uint64_t from = detail::widened(start), to = detail::widened(end);
  std::uint64_t count = 0;
  if (up && start < end) count = detail::steps_within(to - from, step);
  if (!up && start > end) count = detail::steps_within(from - to, 0 - step);
  return {from, step, count};
}
template <std::signed_integral T>
constexpr Space space_until(T start, T end, T step) {
  return space_until(start, end, step > 0, detail::widened(step));
}

// The loop  for (i = lower; step > 0 ? i <= upper : i >= upper; i += step) , as libomp's calls give
// it. Bounds that take in all values of their type stand for no iteration, as in libomp, which
// counts in that type: flang says 0 to n - 1 for a loop of n iterations, also where n is 0.
template <std::integral T>
constexpr Space space_through(T lower, T upper, std::make_signed_t<T> step) {
  AMASIA_CHECK(step != 0, "a loop needs a step");
  const bool up = step > 0;
  const std::uint64_t from = detail::widened(lower), to = detail::widened(upper);
  const std::uint64_t stride = detail::widened(step);
  if (up ? lower > upper : lower < upper) return {from, stride, 0};
  const std::uint64_t steps = up ? (to - from) / stride : (from - to) / (0 - stride);
  const bool whole = steps == std::numeric_limits<std::make_unsigned_t<T>>::max();
  return {from, stride, whole ? 0 : steps + 1};
}

// The loop variable's value in iteration `number`; also for number == count, where it is the first
// value that the loop does not reach (it wraps as the program's own arithmetic would).
template <std::integral T>
constexpr T value_at(const Space& space, std::uint64_t number) {
  return static_cast<T>(space.first + number * space.step);
}

}  // namespace amasia::loops
