// SPDX-License-Identifier: Apache-2.0
#include "tools/devices_command.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "devices/devices.hpp"
#include "tools/node_devices.hpp"

namespace amasia::tools {
namespace {

using Arguments = std::span<const char* const>;

struct Asked {
  std::string socket;  // "": the user's own daemon
  bool once = false;
  int interval_ms = 1000;
};

int refuse(const std::string& sentence) {
  base::log_line(base::LogLevel::kError, "{}", sentence);
  return 2;
}

std::optional<int> read_interval(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(seconds >= 0.05 && seconds <= 3600)) return std::nullopt;
  return static_cast<int>(seconds * 1000);
}

Result<Asked> read_arguments(Arguments arguments, std::string_view command, bool live) {
  Asked out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (argument == "--socket" && has_value) {
      out.socket = arguments[++i];
    } else if (live && argument == "--once") {
      out.once = true;
    } else if (live && argument == "--interval" && has_value) {
      const auto interval = read_interval(arguments[++i]);
      if (!interval) {
        return Error{fmt::format("--interval: '{}' is not a number of seconds from 0.05 to 3600",
                                 arguments[i]),
                     0};
      }
      out.interval_ms = *interval;
    } else if (argument == "--socket" || (live && argument == "--interval")) {
      return Error{fmt::format("{}: it takes a value", argument), 0};
    } else {
      return Error{fmt::format("'{}' is not an argument of {}; it takes {}--socket", argument,
                               command, live ? "--once, --interval and " : "policies and "),
                   0};
    }
  }
  return out;
}

bool is_absent(const Error& error) { return error.code == ECONNREFUSED || error.code == ENOENT; }

Result<NodeDevices> ask(devices::Observer& observer) {
  const auto text = observer.snapshot();
  if (!text.ok()) return text.error();
  return parse_node_devices(text.value());
}

}  // namespace

int devices_command(Arguments arguments) {
  if (!arguments.empty() && std::string_view(arguments[0]) == "policies") {
    if (arguments.size() > 1) {
      return refuse(fmt::format("devices policies takes nothing more, not '{}'", arguments[1]));
    }
    std::fputs(policies_text().c_str(), stdout);
    return 0;
  }
  const auto asked = read_arguments(arguments, "devices", false);
  if (!asked.ok()) return refuse(asked.error().message);
  const auto observer = devices::Observer::open(asked.value().socket);
  std::optional<NodeDevices> daemon;
  if (observer.ok()) {
    const auto now = ask(*observer.value());
    if (!now.ok()) return refuse(now.error().message);
    daemon = now.value();
  } else if (!is_absent(observer.error())) {
    return refuse(observer.error().message);
  }
  const NodeDevices* const known = daemon ? &*daemon : nullptr;
  std::fputs(devices_text(merged(devices::devices_here(), known), known).c_str(), stdout);
  return 0;
}

int top_command(Arguments arguments) {
  const auto asked = read_arguments(arguments, "top", true);
  if (!asked.ok()) return refuse(asked.error().message);
  const auto observer = devices::Observer::open(asked.value().socket);
  if (!observer.ok()) {
    return refuse(is_absent(observer.error())
                      ? "no daemon runs; the first program that uses devices starts one"
                      : observer.error().message);
  }
  const bool screen = ::isatty(STDOUT_FILENO) != 0;
  std::optional<NodeDevices> before;
  for (;;) {
    auto now = ask(*observer.value());
    if (!now.ok()) {
      if (!before) return refuse(now.error().message);
      std::puts("\nthe daemon has ended");
      return 0;
    }
    // The first picture comes with the second answer, which tells utilisation.
    if (before) {
      if (screen) std::fputs("\x1b[H\x1b[2J", stdout);
      std::fputs(top_text(now.value(), &*before).c_str(), stdout);
      if (!screen) std::fputs("\n", stdout);
      if (std::fflush(stdout) != 0) return 0;  // who read it has gone
      if (asked.value().once) return 0;
    }
    before = std::move(now).value();
    ::poll(nullptr, 0, asked.value().interval_ms);
  }
}

}  // namespace amasia::tools
