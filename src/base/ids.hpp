// SPDX-License-Identifier: Apache-2.0
// Distinct types for what would otherwise all be integers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace amasia::base {

// An integer that does not mix with integers of another meaning. `value` is public: it is an id,
// not an abstraction.
template <typename Tag, typename Representation>
struct Id {
  using representation = Representation;
  Representation value{};

  constexpr Id() = default;
  constexpr explicit Id(Representation v) : value(v) {}
  friend constexpr auto operator<=>(Id, Id) = default;
  constexpr Id& operator++() {
    ++value;
    return *this;
  }
};

// A node of the job, 0 … N-1; node 0 is the origin.
using NodeId = Id<struct NodeTag, std::uint16_t>;
inline constexpr NodeId kOrigin{0};
// A set of nodes is a bit mask, which bounds a job.
inline constexpr std::uint32_t kMaxNodes = 64;

// A page of managed memory, counted from the start of the managed file. Pages of all segments
// (globals, heap arenas, stacks) are numbered in one sequence, the same on every node.
using PageIndex = Id<struct PageTag, std::uint64_t>;
using PageCount = std::uint64_t;

}  // namespace amasia::base

template <typename Tag, typename Representation>
struct std::hash<amasia::base::Id<Tag, Representation>> {
  std::size_t operator()(amasia::base::Id<Tag, Representation> id) const noexcept {
    return std::hash<Representation>{}(id.value);
  }
};
