// SPDX-License-Identifier: Apache-2.0
// What the options say about nodes that are slower than they need be: `--emulate` and `--link`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace amasia::base {

inline constexpr double kLeastShare = 0.01;
inline constexpr std::int64_t kMostLatencyUs = 1000 * 1000;
inline constexpr std::int64_t kMostMegabytes = 100 * 1000;

// The numbers of a list such as "1,0.33", in which an option gives one for each node: digits and a
// point, each from `minimum` to `maximum`, at most kMaxNodes. nullopt: the text is none. Pure.
std::optional<std::vector<double>> parse_numbers(std::string_view text, double minimum,
                                                 double maximum);

// "1.0,0.33": the part of a core that each node has, from kLeastShare to 1, for 1 to kMaxNodes
// nodes. nullopt: it is none. Pure.
std::optional<std::vector<double>> parse_shares(std::string_view text);

// What a slowed link does to every message from one node to another.
struct LinkSpeed {
  Nanos latency = 0;
  double bytes_per_ns = 0;  // 0: as many as there are
  bool is_slowed() const { return latency > 0 || bytes_per_ns > 0; }
};

// "50", "50,200" or "0,200": microseconds, and 10^6 bytes a second. Not "0", which slows nothing.
// "" is a link as it is. Pure.
std::optional<LinkSpeed> parse_link(std::string_view text);

}  // namespace amasia::base
