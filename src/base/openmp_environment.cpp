// SPDX-License-Identifier: Apache-2.0
#include "base/openmp_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace amasia::base {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::optional<RuntimeSchedule>> parse_omp_schedule(std::string_view name,
                                                          std::string_view value) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = trimmed(lower);
  const std::optional<RuntimeSchedule> not_ours;
  RuntimeSchedule schedule;
  if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
    const std::string_view modifier = trimmed(rest.substr(0, colon));
    if (modifier != "monotonic" && modifier != "nonmonotonic") return not_ours;
    schedule.monotonic = modifier == "monotonic";
    rest = trimmed(rest.substr(colon + 1));
  }
  const auto comma = rest.find(',');
  const std::string_view kind = trimmed(rest.substr(0, comma));
  if (!kind.starts_with("hetprobe")) return not_ours;
  schedule.again = kind == "hetprobe-i";
  bool good = schedule.again || kind == "hetprobe";
  if (comma != std::string_view::npos) {
    const std::string_view chunk = trimmed(rest.substr(comma + 1));
    const auto end = chunk.data() + chunk.size();
    const auto [stop, error] = std::from_chars(chunk.data(), end, schedule.chunk);
    good = good && error == std::errc() && stop == end && schedule.chunk > 0 &&
           schedule.chunk <= INT32_MAX;
  }
  if (good) return std::optional(schedule);
  return Error{fmt::format("{}: '{}' is not allowed; beside OpenMP's own kinds it takes hetprobe "
                           "or hetprobe-i, which a chunk from 1 to {} may follow (hetprobe,8)",
                           name, value, INT32_MAX),
               0};
}

}  // namespace amasia::base
