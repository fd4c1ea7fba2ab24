// SPDX-License-Identifier: Apache-2.0
#include "loops/weights.hpp"

#include <algorithm>
#include <array>

#include "loops/static_share.hpp"

namespace amasia::loops {
namespace {

using Wide = unsigned __int128;  // count * speed < 2^88, count * all speeds < 2^120

// Of a node: its threads get `size` iterations each, the first `longer` of them one more.
struct NodeShare {
  std::uint64_t size = 0;
  std::uint32_t longer = 0;

  std::uint64_t total(std::uint32_t threads) const { return size * threads + longer; }
};

struct Shares {
  std::array<NodeShare, base::kMaxNodes> of;
};

// The node whose next thread would be the first to finish one iteration more.
std::size_t first_to_finish(const Shares& shares, std::span<const Power> powers) {
  std::size_t best = powers.size();
  for (std::size_t r = 0; r < powers.size(); ++r) {
    if (powers[r].total() == 0) continue;
    if (best == powers.size() || Wide{shares.of[r].size + 1} * powers[best].speed <
                                     Wide{shares.of[best].size + 1} * powers[r].speed) {
      best = r;
    }
  }
  AMASIA_CHECK(best < powers.size(), "some node has a speed");
  return best;
}

Shares shares_of(std::uint64_t count, std::span<const Power> powers) {
  AMASIA_CHECK(is_valid(powers), "some node has a speed, and none more than the highest");
  std::uint64_t total = 0;
  for (const Power& power : powers) total += power.total();
  Shares shares;
  std::uint64_t left = count;
  for (std::size_t r = 0; r < powers.size(); ++r) {
    shares.of[r].size = static_cast<std::uint64_t>(Wide{count} * powers[r].speed / total);
    left -= shares.of[r].size * powers[r].threads;
  }
  // Less than one a thread is left, and each round gives away at least one.
  while (left > 0) {
    const std::size_t r = first_to_finish(shares, powers);
    if (left < powers[r].threads) {
      shares.of[r].longer = static_cast<std::uint32_t>(left);
      break;
    }
    ++shares.of[r].size;
    left -= powers[r].threads;
  }
  return shares;
}

// Nodes that write neighbouring elements of one page take it from each other in every loop, while
// a few iterations more or less are soon done. Elements of 4 and 8 bytes fill a page by so many,
// and large blocks of memory begin with one; who meets in the middle of one shares fewer of them.
constexpr std::uint64_t kLeastGrain = 64;
// A seam moves by at most that part of the smallest node's share, and not at all where that has
// few iterations: these may be dear ones, and programs show how many a thread has.
constexpr std::uint64_t kFineParts = 64, kCoarseParts = 16, kFew = 1024;

std::uint64_t most_shift(const Shares& shares, std::span<const Power> powers) {
  std::uint64_t least = kMostGrain * kFineParts;
  bool coarse = false;
  for (std::size_t r = 0; r < powers.size(); ++r) {
    if (powers[r].total() > 0) least = std::min(least, shares.of[r].total(powers[r].threads));
    coarse = coarse || powers[r].seam == Seam::kCoarse;
  }
  if (least < kFew) return 0;
  return least / (coarse ? kCoarseParts : kFineParts);
}

// The seam near iteration `number`, where two nodes' runs meet: where the loop variable is a
// multiple of the greatest power of two that `shift` allows. Loops over the same elements have it
// at the same one, wherever they begin.
std::uint64_t seam_at(std::uint64_t number, const Space& space, std::uint64_t shift) {
  if (number == 0 || number == space.count) return number;
  for (std::uint64_t grain = kMostGrain; grain >= kLeastGrain; grain /= 2) {
    const std::uint64_t offset = space.step == 1 ? space.first % grain : 0;
    const std::uint64_t near = (number + offset + grain / 2) / grain * grain;
    const std::uint64_t exact = number + offset;
    if (std::max(near, exact) - std::min(near, exact) <= shift) return near - offset;
  }
  return number;
}

}  // namespace

bool is_valid(std::span<const Power> powers) {
  const auto fast = [](const Power& power) { return power.speed > kMaxSpeed; };
  const auto works = [](const Power& power) { return power.total() > 0; };
  return powers.size() <= base::kMaxNodes && std::none_of(powers.begin(), powers.end(), fast) &&
         std::any_of(powers.begin(), powers.end(), works);
}

bool is_even(std::span<const Power> powers) {
  const auto differs = [&powers](const Power& power) { return power.speed != powers[0].speed; };
  return std::none_of(powers.begin(), powers.end(), differs);
}

Iterations weighted_block(std::uint64_t count, std::span<const Power> powers, std::size_t rank,
                          std::uint32_t local_thread) {
  AMASIA_CHECK(rank < powers.size(), "a node that shares a loop has a rank");
  AMASIA_CHECK(local_thread < powers[rank].threads, "a thread's number is below its node's team");
  const Shares shares = shares_of(count, powers);
  std::uint64_t begin = 0;
  for (std::size_t r = 0; r < rank; ++r) begin += shares.of[r].total(powers[r].threads);
  const NodeShare& own = shares.of[rank];
  begin += own.size * local_thread + std::min(local_thread, own.longer);
  return {begin, begin + own.size + (local_thread < own.longer ? 1 : 0)};
}

Iterations static_share(const Space& space, std::span<const Power> powers, std::size_t rank,
                        std::uint32_t local_thread, bool* by_speed) {
  AMASIA_CHECK(rank < powers.size(), "a node that shares a loop has a rank");
  std::uint32_t threads = 0, thread = local_thread;
  for (std::size_t r = 0; r < powers.size(); ++r) {
    if (r < rank) thread += powers[r].threads;
    threads += powers[r].threads;
  }
  *by_speed = space.count > threads;
  if (!*by_speed) return static_block(space.count, thread, threads);
  const Shares shares = shares_of(space.count, powers);
  std::uint64_t begin = 0;
  for (std::size_t r = 0; r < rank; ++r) begin += shares.of[r].total(powers[r].threads);
  const std::uint64_t end = begin + shares.of[rank].total(powers[rank].threads);
  const std::uint64_t shift = most_shift(shares, powers);
  const std::uint64_t from = seam_at(begin, space, shift), to = seam_at(end, space, shift);
  const Iterations block = static_block(to - from, local_thread, powers[rank].threads);
  return {from + block.begin, from + block.end};
}

Iterations unweighted_block(std::uint64_t count, std::span<const Power> powers, std::size_t rank,
                            std::uint32_t local_thread) {
  AMASIA_CHECK(is_valid(powers), "some node has a speed, and none more than the highest");
  std::array<Power, base::kMaxNodes> even;
  for (std::size_t r = 0; r < powers.size(); ++r) {
    even[r] = {powers[r].threads, powers[r].speed > 0 ? kEvenSpeed : 0};
  }
  return weighted_block(count, {even.data(), powers.size()}, rank, local_thread);
}

Iterations weighted_node_block(std::uint64_t count, std::span<const Power> powers,
                               std::size_t rank) {
  AMASIA_CHECK(rank < powers.size(), "a node that shares a loop has a rank");
  const Shares shares = shares_of(count, powers);
  std::uint64_t begin = 0;
  for (std::size_t r = 0; r < rank; ++r) begin += shares.of[r].total(powers[r].threads);
  return {begin, begin + shares.of[rank].total(powers[rank].threads)};
}

void weighted_node_blocks(std::uint64_t count, std::span<const Power> powers,
                          std::span<Iterations> blocks) {
  AMASIA_CHECK(blocks.size() == powers.size(), "each node gets a block");
  const Shares shares = shares_of(count, powers);
  std::uint64_t begin = 0;
  for (std::size_t r = 0; r < powers.size(); ++r) {
    blocks[r] = {begin, begin + shares.of[r].total(powers[r].threads)};
    begin = blocks[r].end;
  }
}

void seamed_node_blocks(const Space& space, std::span<const Power> powers,
                        std::span<Iterations> blocks) {
  weighted_node_blocks(space.count, powers, blocks);
  const std::uint64_t shift = most_shift(shares_of(space.count, powers), powers);
  for (Iterations& block : blocks) {
    block = {seam_at(block.begin, space, shift), seam_at(block.end, space, shift)};
  }
}

}  // namespace amasia::loops
