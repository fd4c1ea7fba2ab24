// SPDX-License-Identifier: Apache-2.0
// Unbalanced Tree Search (Olivier et al., LCPC 2006): a node is a SHA-1 digest, a child the digest
// of its parent's and its number; how many children a node has is drawn from its own digest. Of a
// geometric tree the mean number depends on the height; of a binomial one all nodes but the root
// have either a number of children or none, so subtrees of any height have any size.
#pragma once

#include <algorithm>
#include <cmath>

#include "sha1.hpp"

namespace uts {

enum class Kind { kFixed, kLinear, kBinomial };
struct Shape {
  const char* name;
  Kind kind;
  int depth;         // of a binomial tree: no limit
  double branching;  // the root's; linear: less the deeper, 0 at `depth`
  double chance;     // of a node of a binomial tree to have `children`
  int children;
  std::uint32_t seed;
  long nodes;  // as published
};
// Published sample trees.
inline constexpr Shape kT1{"T1", Kind::kFixed, 10, 4, 0, 0, 19, 4'130'071};
inline constexpr Shape kT3{"T3", Kind::kBinomial, 0, 2000, 0.124875, 8, 42, 4'112'897};
inline constexpr Shape kT5{"T5", Kind::kLinear, 20, 4, 0, 0, 34, 4'147'582};
inline constexpr int kMostChildren = 100;  // but for a binomial tree's root

struct Node {
  Digest state;
  int height;
};

inline void store_big_endian(std::uint8_t* to, std::uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(to, &value, 4);
}

inline Node root_of(const Shape& shape) {
  std::array<std::uint8_t, 20> first{};
  store_big_endian(&first[16], shape.seed);
  return {sha1(first.data(), first.size()), 0};
}

inline Node child_of(const Node& parent, int number) {
  std::array<std::uint8_t, 24> message;
  std::copy(parent.state.begin(), parent.state.end(), message.begin());
  store_big_endian(&message[20], static_cast<std::uint32_t>(number));
  return {sha1(message.data(), message.size()), parent.height + 1};
}

// From 0 to 1, without 1.
inline double drawn_by(const Node& node) {
  std::uint32_t word = 0;
  std::memcpy(&word, &node.state[16], 4);
  return (__builtin_bswap32(word) & 0x7fffffffu) / 2147483648.0;
}

inline int children_of(const Node& node, const Shape& shape) {
  if (shape.kind == Kind::kBinomial) {
    if (node.height == 0) return static_cast<int>(shape.branching);
    return drawn_by(node) < shape.chance ? shape.children : 0;
  }
  if (node.height >= shape.depth) return 0;
  double mean = shape.branching;
  if (shape.kind == Kind::kLinear) mean *= 1 - static_cast<double>(node.height) / shape.depth;
  const double stop = 1 / (1 + mean);
  const double count = std::floor(std::log(1 - drawn_by(node)) / std::log(1 - stop));
  return std::min(static_cast<int>(count), kMostChildren);
}

inline long count_serially(const Node& node, const Shape& shape) {
  long nodes = 1;
  const int children = children_of(node, shape);
  for (int n = 0; n < children; ++n) nodes += count_serially(child_of(node, n), shape);
  return nodes;
}

}  // namespace uts
