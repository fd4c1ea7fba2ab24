// SPDX-License-Identifier: Apache-2.0
// The graph of Graph500: Kronecker edges (A, B, C = 0.57, 0.19, 0.19), made from numbers alone,
// so that every PE can make any of them; a search by one thread; and the checks of its rules.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bfs {

using Vertex = std::int64_t;
using Edge = std::pair<Vertex, Vertex>;
constexpr Vertex kNone = -1;

inline std::uint64_t mixed(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// Labels are permuted, as Graph500 wants it: a bijection of `scale` bits.
inline Vertex permuted(Vertex vertex, int scale) {
  const std::uint64_t mask = (std::uint64_t{1} << scale) - 1;
  auto value = static_cast<std::uint64_t>(vertex);
  for (int round = 0; round < 3; ++round) {
    value = (value * 0x9E3779B97F4A7C15u + 0x7F4A7C15u) & mask;  // odd factor: a bijection
    value ^= value >> (scale / 2 + 1);
  }
  return static_cast<Vertex>(value & mask);
}

inline Edge edge(std::uint64_t number, int scale) {
  Vertex from = 0, to = 0;
  for (int level = 0; level < scale; ++level) {
    const std::uint64_t chance =
        mixed(number * 64 + static_cast<std::uint64_t>(level)) % 100;  // of A, B, C, D
    from = 2 * from + (chance >= 76 ? 1 : 0);
    to = 2 * to + ((chance >= 57 && chance < 76) || chance >= 95 ? 1 : 0);
  }
  return {permuted(from, scale), permuted(to, scale)};
}

// Neighbours of the vertices from `first` on; edges go both ways.
struct Neighbours {
  Vertex first = 0;
  std::vector<std::size_t> begin;
  std::vector<Vertex> ends;

  Neighbours(int scale, std::uint64_t edges, Vertex first_in, Vertex count)
      : first(first_in), begin(static_cast<std::size_t>(count) + 1) {
    const auto has = [&](Vertex v) { return v >= first && v < first + count; };
    const auto at = [&](Vertex v) { return static_cast<std::size_t>(v - first); };
    for (std::uint64_t n = 0; n < edges; ++n) {
      const auto [a, b] = edge(n, scale);
      if (a == b) continue;
      if (has(a)) ++begin[at(a) + 1];
      if (has(b)) ++begin[at(b) + 1];
    }
    for (std::size_t n = 1; n < begin.size(); ++n) begin[n] += begin[n - 1];
    ends.resize(begin.back());
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    for (std::uint64_t n = 0; n < edges; ++n) {
      const auto [a, b] = edge(n, scale);
      if (a == b) continue;
      if (has(a)) ends[next[at(a)]++] = b;
      if (has(b)) ends[next[at(b)]++] = a;
    }
  }
  template <typename Visit>
  void visit(Vertex vertex, Visit visit) const {
    const auto at = static_cast<std::size_t>(vertex - first);
    for (std::size_t n = begin[at]; n < begin[at + 1]; ++n) visit(ends[n]);
  }
  std::size_t degree(Vertex vertex) const {
    const auto at = static_cast<std::size_t>(vertex - first);
    return begin[at + 1] - begin[at];
  }
};

// Parents of all vertices, by one thread.
inline std::vector<Vertex> search(const Neighbours& whole, Vertex vertices, Vertex root) {
  std::vector<Vertex> parents(static_cast<std::size_t>(vertices), kNone);
  std::vector<Vertex> frontier{root}, next;
  parents[static_cast<std::size_t>(root)] = root;
  for (; !frontier.empty(); std::swap(frontier, next), next.clear()) {
    for (const Vertex from : frontier) {
      whole.visit(from, [&](Vertex to) {
        Vertex& parent = parents[static_cast<std::size_t>(to)];
        if (parent != kNone) return;
        parent = from;
        next.push_back(to);
      });
    }
  }
  return parents;
}

// How far each vertex is from the root along its parents; kNone: not reached, -2: in a circle.
inline std::vector<Vertex> depths(const std::vector<Vertex>& parents, Vertex root) {
  std::vector<Vertex> all(parents.size(), kNone);
  const auto limit = static_cast<Vertex>(parents.size());
  for (std::size_t n = 0; n < parents.size(); ++n) {
    if (parents[n] == kNone) continue;
    Vertex at = static_cast<Vertex>(n), steps = 0;
    while (at != root && at != kNone && steps <= limit) {
      at = parents[static_cast<std::size_t>(at)];
      ++steps;
    }
    all[n] = at == root ? steps : -2;
  }
  return all;
}

// What breaks the rules of Graph500, if anything: parents are neighbours one step nearer to the
// root, and no edge joins what was reached with what was not, or spans more than one step.
inline std::string wrong_in(const std::vector<Vertex>& parents, const Neighbours& whole,
                            Vertex root) {
  const std::vector<Vertex> depth = depths(parents, root);
  if (parents[static_cast<std::size_t>(root)] != root) return "the root is not its own parent";
  for (std::size_t n = 0; n < parents.size(); ++n) {
    const auto vertex = static_cast<Vertex>(n);
    if (depth[n] == -2) return "parents of " + std::to_string(n) + " do not lead to the root";
    bool is_neighbour = vertex == root || parents[n] == kNone;
    std::string wrong;
    whole.visit(vertex, [&](Vertex to) {
      const Vertex other = depth[static_cast<std::size_t>(to)];
      is_neighbour = is_neighbour || to == parents[n];
      if ((other == kNone) != (depth[n] == kNone)) wrong = "an edge was not followed";
      if (depth[n] > other + 1) wrong = "a way is not the shortest";
    });
    if (!is_neighbour) wrong = "there is no edge to the parent of " + std::to_string(n);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace bfs
