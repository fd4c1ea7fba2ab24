// SPDX-License-Identifier: Apache-2.0
// One line a call, one write(2) a line, no allocation and no lock: usable on the fault path. Lines
// begin with "amasia[node]: " once the node is known.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace amasia::base {

enum class LogLevel { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

// Lines above the level are dropped. Set once at start, before other threads exist.
void set_log_level(LogLevel level) noexcept;
// `node` < 0: not known yet. `descriptor` is where lines go, stderr unless set.
void set_log_identity(int node, int descriptor) noexcept;
bool log_enabled(LogLevel level) noexcept;
void write_log_line(LogLevel level, std::string_view text) noexcept;

template <typename... Args>
void log_line(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!log_enabled(level)) return;
  char buffer[1024];  // a longer line is cut
  const auto result = fmt::format_to_n(buffer, sizeof buffer, format, std::forward<Args>(args)...);
  write_log_line(level, {buffer, std::min(result.size, sizeof buffer)});
}

}  // namespace amasia::base
