// SPDX-License-Identifier: Apache-2.0
#include "loops/takes.hpp"

#include <algorithm>

#include "loops/weights.hpp"

namespace amasia::loops {

std::uint64_t at_least_chunk(std::uint64_t wanted, std::uint64_t remaining, std::uint64_t chunk) {
  const std::uint64_t least = std::max<std::uint64_t>(chunk, 1);
  const std::uint64_t size = std::max(wanted, least);
  return size >= remaining || remaining - size < least ? remaining : size;
}

std::uint64_t chunk_per_thread(std::uint64_t remaining, std::uint64_t chunk,
                               std::uint32_t threads) {
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(std::max<std::uint64_t>(chunk, 1), std::uint64_t{threads}, &size)) {
    return remaining;
  }
  return std::min(size, remaining);
}

std::uint64_t batch_take(std::uint64_t remaining, std::uint64_t chunk, std::uint32_t threads,
                         std::uint64_t part, std::uint64_t whole, Batch& batch) {
  if (batch.left == 0) {
    batch.size = remaining - remaining / 2;
    batch.left = batch.size;
  }
  const std::uint64_t share = std::min(part_of(batch.size, part, whole), batch.left);
  // Near the end at least a chunk for each thread, or the others of the node ask again at once.
  const std::uint64_t least = chunk_per_thread(remaining, chunk, threads);
  const std::uint64_t size = at_least_chunk(std::max(share, least), remaining, chunk);
  batch.left -= std::min(size, batch.left);
  return size;
}

std::uint64_t thread_of_batch_take(const Stock& stock, std::uint64_t chunk) {
  const std::uint64_t even =
      stock.refill / stock.threads + (stock.refill % stock.threads != 0 ? 1 : 0);
  return at_least_chunk(even, stock.remaining, chunk);
}

}  // namespace amasia::loops
