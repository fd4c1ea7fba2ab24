// SPDX-License-Identifier: Apache-2.0
// Parallel loops. Included by <amasia/tasks.hpp>.
#pragma once

#include <algorithm>

#include "amasia/tasks.hpp"

namespace amasia::tasks {
namespace detail {

// The tiles of a range, numbered in row-major order.
template <std::size_t kDimensions>
struct Tiles {
  range<kDimensions> space;
  std::array<std::ptrdiff_t, kDimensions> counts{};
  std::ptrdiff_t total = 1;

  explicit Tiles(range<kDimensions> over) : space(over) {
    constexpr std::size_t kLast = kDimensions - 1;
    for (std::size_t d = 0; d < kDimensions; ++d) {
      std::ptrdiff_t extent = 0;
      bool fits = true;
      if (space.low[d] < space.high[d]) {
        fits = !__builtin_sub_overflow(space.high[d], space.low[d], &extent);
      }
      std::ptrdiff_t& tile = space.tile[d];
      if (tile <= 0) tile = d == kLast ? chosen(extent) : 1;
      // A division takes longer than some bodies do.
      counts[d] = tile == 1 ? extent : extent / tile + (extent % tile != 0 ? 1 : 0);
      if (!fits || __builtin_mul_overflow(total, counts[d], &total)) {
        throw std::length_error("forasync: a loop has at most PTRDIFF_MAX iterations and tiles");
      }
    }
  }
  // Small enough to share evenly, and in several dimensions at most a row.
  static std::ptrdiff_t chosen(std::ptrdiff_t extent) {
    if (kDimensions > 1) return std::clamp<std::ptrdiff_t>(extent, 1, 1024);
    return std::max<std::ptrdiff_t>(1, extent / (64 * static_cast<std::ptrdiff_t>(worker_count())));
  }

  // From tile `first` to before `last`, as long as `goes_on` says after each; the next one.
  template <typename Body, typename GoesOn>
  std::ptrdiff_t run(std::ptrdiff_t first, std::ptrdiff_t last, Body& body,
                     const GoesOn& goes_on) const {
    if constexpr (kDimensions == 1) {
      // What stays the same is kept at hand: a body of few nanoseconds would take twice as long.
      const std::ptrdiff_t tile = space.tile[0], end = space.high[0];
      std::ptrdiff_t low = space.low[0] + first * tile;
      do {
        const std::ptrdiff_t high = end_of(low, tile, end);
        for (std::ptrdiff_t i = low; i < high; ++i) body(i);
        low = high;
      } while (++first < last && goes_on());
    } else {
      do run_tile(first, body);
      while (++first < last && goes_on());
    }
    return first;
  }

 private:
  // Of the tile that begins at `low`; low + tile may be more than there are numbers.
  static std::ptrdiff_t end_of(std::ptrdiff_t low, std::ptrdiff_t tile, std::ptrdiff_t end) {
    return end - low > tile ? low + tile : end;
  }
  template <typename Body>
  void run_tile(std::ptrdiff_t number, Body& body) const {
    std::array<std::ptrdiff_t, kDimensions> low, high;
    for (std::size_t d = kDimensions; d-- > 0;) {
      // The first dimension needs no division.
      const std::ptrdiff_t at = d == 0 ? number : number % counts[d];
      low[d] = space.low[d] + at * space.tile[d];
      high[d] = end_of(low[d], space.tile[d], space.high[d]);
      if (d > 0) number /= counts[d];
    }
    if constexpr (kDimensions == 2) {
      for (std::ptrdiff_t i = low[0]; i < high[0]; ++i) {
        for (std::ptrdiff_t j = low[1]; j < high[1]; ++j) body(i, j);
      }
    } else {
      for (std::ptrdiff_t i = low[0]; i < high[0]; ++i) {
        for (std::ptrdiff_t j = low[1]; j < high[1]; ++j) {
          for (std::ptrdiff_t k = low[2]; k < high[2]; ++k) body(i, j, k);
        }
      }
    }
  }
};

// Which half of a range of `total` tiles, divided at `middle`, a worker keeps for itself: the upper
// one if its own place among the tiles is there, with the first worker's at the first tile and the
// last one's at the last. So in loop after loop over the same data each finds what is in its cache,
// whichever of them begins the loop.
constexpr bool keeps_upper(std::ptrdiff_t middle, std::ptrdiff_t total, unsigned worker,
                           unsigned workers) {
  return workers > 1 && static_cast<double>(total) * worker >=
                            static_cast<double>(middle) * (workers - 1);
}

// Gives half of what is left away whenever nothing is there for others to take (lazy binary
// splitting, Tzannes et al., PPoPP 2010): without thieves a loop costs the logarithm in tasks.
template <typename Loop>
void run_tiles(const Loop& loop, std::ptrdiff_t first, std::ptrdiff_t last) {
  while (first < last) {
    const LoopTurn turn = next_turn(last - first > 1);
    if (turn.step == LoopStep::kStop) return;
    if (turn.step == LoopStep::kRunTiles) {
      first = loop->tiles.run(first, last, loop->body, [&turn] { return turn.holds(); });
      continue;
    }
    const std::ptrdiff_t middle = first + (last - first) / 2;
    const bool upper = keeps_upper(middle, loop->tiles.total, turn.worker, turn.workers);
    const std::ptrdiff_t from = upper ? first : middle, to = upper ? middle : last;
    auto half = [loop, from, to] { run_tiles(loop, from, to); };
    offer(ClosureTask<decltype(half)>::make(std::move(half)));
    (upper ? first : last) = middle;
  }
}

template <std::size_t kDimensions, typename Body>
struct Loop {
  Tiles<kDimensions> tiles;
  Body body;
};

}  // namespace detail

// body(i), body(i, j) or body(i, j, k) for all of the range, in any order, by any worker; waits.
// Throws what the body throws, and std::length_error where the range has more than PTRDIFF_MAX.
template <std::size_t kDimensions, typename Body>
void forasync(const range<kDimensions>& over, Body&& body, const where& at = where::current()) {
  static_assert(kDimensions >= 1 && kDimensions <= 3, "loops have one to three dimensions");
  detail::Loop<kDimensions, std::remove_reference_t<Body>&> loop{
      detail::Tiles<kDimensions>(over), body};
  finish([&] { detail::run_tiles(&loop, 0, loop.tiles.total); }, at);
}
template <typename Body>
void forasync(std::ptrdiff_t low, std::ptrdiff_t high, Body&& body,
              const where& at = where::current()) {
  forasync(range<1>{{low}, {high}, {}}, std::forward<Body>(body), at);
}

// The same without waiting: nothing of it runs in the caller. The body is copied once.
template <std::size_t kDimensions, typename Body>
future<void> forasync_future(const range<kDimensions>& over, Body&& body) {
  static_assert(kDimensions >= 1 && kDimensions <= 3, "loops have one to three dimensions");
  using Shared = detail::Loop<kDimensions, std::decay_t<Body>>;
  auto loop =
      std::make_shared<Shared>(Shared{detail::Tiles<kDimensions>(over), std::forward<Body>(body)});
  return finish_future([&] { async([loop] { detail::run_tiles(loop, 0, loop->tiles.total); }); });
}
template <typename Body>
future<void> forasync_future(std::ptrdiff_t low, std::ptrdiff_t high, Body&& body) {
  return forasync_future(range<1>{{low}, {high}, {}}, std::forward<Body>(body));
}

}  // namespace amasia::tasks
