// SPDX-License-Identifier: Apache-2.0
#include "base/emulation.hpp"

#include <charconv>

#include "base/ids.hpp"

namespace amasia::base {
namespace {

// A whole number that is all of `text`.
std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t most) {
  std::int64_t number = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number > most) return std::nullopt;
  return number;
}

// Digits and a point only: from_chars alone would take "inf" as well.
std::optional<double> parse_number(std::string_view text, double minimum, double maximum) {
  if (text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  double number = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (number < minimum || number > maximum) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::vector<double>> parse_numbers(std::string_view text, double minimum,
                                                 double maximum) {
  std::vector<double> out;
  while (out.size() < kMaxNodes) {
    const auto comma = text.find(',');
    const auto number = parse_number(text.substr(0, comma), minimum, maximum);
    if (!number) return std::nullopt;
    out.push_back(*number);
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::optional<std::vector<double>> parse_shares(std::string_view text) {
  return parse_numbers(text, kLeastShare, 1);
}

std::optional<LinkSpeed> parse_link(std::string_view text) {
  if (text.empty()) return LinkSpeed{};
  const auto comma = text.find(',');
  const auto latency = parse_whole(text.substr(0, comma), kMostLatencyUs);
  if (!latency) return std::nullopt;
  LinkSpeed link{.latency = *latency * kMicrosecond, .bytes_per_ns = 0};
  if (comma != std::string_view::npos) {
    const auto megabytes = parse_whole(text.substr(comma + 1), kMostMegabytes);
    if (!megabytes || *megabytes == 0) return std::nullopt;
    link.bytes_per_ns = static_cast<double>(*megabytes) / 1000;
  }
  if (!link.is_slowed()) return std::nullopt;
  return link;
}

}  // namespace amasia::base
