// SPDX-License-Identifier: Apache-2.0
// Unbalanced Tree Search (Olivier et al., LCPC 2006): the geometric trees of fixed shape. A node is
// a SHA-1 digest, a child the digest of its parent's and its number; how many children a node has
// is drawn from its own digest.
#pragma once

#include <algorithm>
#include <cmath>

#include "sha1.hpp"

namespace uts {

struct Shape {
  int depth;
  double branching;
  std::uint32_t seed;
  long nodes;  // as published
};
// The published sample tree T1.
inline constexpr Shape kT1{10, 4, 19, 4'130'071};
inline constexpr int kMostChildren = 100;

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

inline int children_of(const Node& node, const Shape& shape) {
  if (node.height >= shape.depth) return 0;
  std::uint32_t word = 0;
  std::memcpy(&word, &node.state[16], 4);
  const double drawn = (__builtin_bswap32(word) & 0x7fffffffu) / 2147483648.0;
  const double stop = 1.0 / (1.0 + shape.branching);
  const double count = std::floor(std::log(1 - drawn) / std::log(1 - stop));
  return std::min(static_cast<int>(count), kMostChildren);
}

inline long count_serially(const Node& node, const Shape& shape) {
  long nodes = 1;
  const int children = children_of(node, shape);
  for (int n = 0; n < children; ++n) nodes += count_serially(child_of(node, n), shape);
  return nodes;
}

}  // namespace uts
