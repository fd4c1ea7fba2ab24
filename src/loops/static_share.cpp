// SPDX-License-Identifier: Apache-2.0
#include "loops/static_share.hpp"

#include <algorithm>

namespace amasia::loops {

Iterations static_block(std::uint64_t count, std::uint32_t thread, std::uint32_t threads) {
  AMASIA_CHECK(thread < threads, "a thread's number is below the team's size");
  const std::uint64_t small = count / threads, longer = count % threads;
  const std::uint64_t begin = small * thread + std::min<std::uint64_t>(thread, longer);
  return {begin, begin + small + (thread < longer ? 1 : 0)};
}

std::optional<Iterations> static_chunk(std::uint64_t count, std::uint64_t chunk,
                                       std::uint32_t thread, std::uint32_t threads,
                                       std::uint64_t round) {
  AMASIA_CHECK(thread < threads, "a thread's number is below the team's size");
  AMASIA_CHECK(chunk > 0, "a chunk has at least one iteration");
  std::uint64_t number = 0, begin = 0;
  if (__builtin_mul_overflow(round, std::uint64_t{threads}, &number) ||
      __builtin_add_overflow(number, std::uint64_t{thread}, &number) ||
      __builtin_mul_overflow(number, chunk, &begin) || begin >= count) {
    return std::nullopt;
  }
  return Iterations{begin, begin + std::min(chunk, count - begin)};
}

Iterations static_block_of_chunks(std::uint64_t count, std::uint64_t chunk, std::uint32_t thread,
                                  std::uint32_t threads) {
  AMASIA_CHECK(thread < threads, "a thread's number is below the team's size");
  AMASIA_CHECK(chunk > 0, "a chunk has at least one iteration");
  const std::uint64_t even = count / threads + (count % threads != 0 ? 1 : 0);
  const std::uint64_t chunks = even / chunk + (even % chunk != 0 ? 1 : 0);
  std::uint64_t span = 0, begin = 0;
  if (__builtin_mul_overflow(chunks, chunk, &span)) span = count;
  if (__builtin_mul_overflow(span, std::uint64_t{thread}, &begin)) begin = count;
  begin = std::min(begin, count);
  return {begin, begin + std::min(span, count - begin)};
}

}  // namespace amasia::loops
