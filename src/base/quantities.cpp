// SPDX-License-Identifier: Apache-2.0
#include "base/quantities.hpp"

#include <fmt/format.h>

namespace amasia::base {

std::string duration_text(Nanos nanos) {
  const auto value = static_cast<double>(nanos);
  if (nanos < 10 * kMicrosecond) return fmt::format("{} ns", nanos);
  if (nanos < kMillisecond) return fmt::format("{:.1f} us", value / 1e3);
  if (nanos < 10 * kSecond) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string volume_text(Bytes bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 10 * kKiB) return fmt::format("{} B", bytes);
  if (bytes < 10 * kMiB) return fmt::format("{:.1f} KiB", value / static_cast<double>(kKiB));
  if (bytes < 10 * kGiB) return fmt::format("{:.1f} MiB", value / static_cast<double>(kMiB));
  return fmt::format("{:.2f} GiB", value / static_cast<double>(kGiB));
}

}  // namespace amasia::base
