// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <unistd.h>

#include <atomic>

namespace amasia::base {
namespace {

// The log is the one piece of process-wide state that is not the ABI's: a check that fails anywhere
// must be able to say on which node. Relaxed: the values are set before other threads start.
std::atomic<LogLevel> current_level{LogLevel::kWarning};
std::atomic<int> current_node{-1};
std::atomic<int> current_descriptor{STDERR_FILENO};

}  // namespace

void set_log_level(LogLevel level) noexcept {
  current_level.store(level, std::memory_order_relaxed);
}

void set_log_identity(int node, int descriptor) noexcept {
  current_node.store(node, std::memory_order_relaxed);
  current_descriptor.store(descriptor, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) noexcept {
  return level <= current_level.load(std::memory_order_relaxed);
}

void write_log_line(LogLevel, std::string_view text) noexcept {
  char line[1100];
  const int node = current_node.load(std::memory_order_relaxed);
  const auto end = node < 0 ? fmt::format_to_n(line, sizeof line, "amasia: {}\n", text)
                            : fmt::format_to_n(line, sizeof line, "amasia[{}]: {}\n", node, text);
  const std::size_t length = std::min(end.size, sizeof line);
  // A log line that cannot be written has nowhere else to go.
  [[maybe_unused]] const auto written =
      ::write(current_descriptor.load(std::memory_order_relaxed), line, length);
}

}  // namespace amasia::base
