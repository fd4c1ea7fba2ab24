// SPDX-License-Identifier: Apache-2.0
#include "devices/daemon/settings.hpp"

#include <fmt/format.h>

#include <charconv>

namespace amasia::devices {
namespace {

Status parse_number(std::string_view flag, std::string_view text, std::int64_t most,
                    std::int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size() || *value < 0 || *value > most) {
    return Error{fmt::format("{} is '{}' (allowed: 0 … {})", flag, text, most)};
  }
  return base::ok();
}

struct Row {
  std::string_view flag, value, help;
  Status (*set)(DaemonSettings&, std::string_view);
};
template <std::int64_t kUnit, std::int64_t kMost, auto kMember>
Status set_time(DaemonSettings& settings, std::string_view text) {
  std::int64_t number = 0;
  if (auto done = parse_number("the time", text, kMost, &number); !done.ok()) return done;
  settings.server.*kMember = number * kUnit;
  return base::ok();
}

constexpr Row kRows[] = {
    {"--socket", "PATH", "where it listens; $AMASIA_DEVICES_SOCKET, else the user's own place",
     [](DaemonSettings& settings, std::string_view text) {
       settings.socket = text;
       return base::ok();
     }},
    {"--group", "NAME", "users of this group may connect too, not only this user",
     [](DaemonSettings& settings, std::string_view text) {
       settings.group = text;
       return base::ok();
     }},
    {"--policy", "NAME", "how tasks are placed: `amasia devices policies` lists; or FILE[:OPTIONS]",
     [](DaemonSettings& settings, std::string_view text) {
       settings.policy = text;
       return base::ok();
     }},
    {"--policy-settings", "KEY=VALUE,…", "the policy's own",
     [](DaemonSettings& settings, std::string_view text) {
       settings.policy_settings = text;
       return base::ok();
     }},
    {"--trace", "FILE", "write what each task did, for `amasia report` and Perfetto",
     [](DaemonSettings& settings, std::string_view text) {
       settings.trace = text;
       return base::ok();
     }},
    {"--idle-end", "SECONDS", "end after so long without a program; 0: never (10 if --inherited)",
     &set_time<base::kSecond, 1'000'000, &ServerSettings::idle_end>},
    {"--drain", "SECONDS", "how long tasks may still take after SIGTERM (30)",
     &set_time<base::kSecond, 1'000'000, &ServerSettings::drain_limit>},
    {"--spin", "MICROSECONDS", "how long it looks for the next request before it sleeps (50)",
     &set_time<base::kMicrosecond, 1'000'000, &ServerSettings::spin>},
    {"--inherited", "", "its standard input is the listening socket (a client has made it)",
     [](DaemonSettings& settings, std::string_view) {
       settings.inherited = true;
       return base::ok();
     }},
    {"--detach", "", "go on in the background",
     [](DaemonSettings& settings, std::string_view) {
       settings.detach = true;
       return base::ok();
     }},
    {"--help", "", "this text",
     [](DaemonSettings& settings, std::string_view) {
       settings.help = true;
       return base::ok();
     }},
};

}  // namespace

Result<DaemonSettings> parse_daemon_arguments(std::span<const char* const> arguments) {
  DaemonSettings settings;
  bool idle_end_given = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view flag = arguments[i];
    const Row* row = nullptr;
    for (const Row& one : kRows) {
      if (one.flag == flag) row = &one;
    }
    if (row == nullptr) {
      return Error{fmt::format("unknown argument '{}' (amasia-deviced --help lists them)", flag)};
    }
    std::string_view value;
    if (!row->value.empty()) {
      if (++i == arguments.size()) return Error{fmt::format("{} needs {}", flag, row->value)};
      value = arguments[i];
    }
    if (auto done = row->set(settings, value); !done.ok()) {
      return Error{fmt::format("{}: {}", flag, done.error().message)};
    }
    idle_end_given |= flag == "--idle-end";
  }
  if (settings.server.idle_end == 0) settings.server.idle_end = -1;
  if (settings.inherited && !idle_end_given) settings.server.idle_end = 10 * base::kSecond;
  return settings;
}

std::string daemon_usage() {
  std::string text = "amasia-deviced: decides which program's task runs next, and on which "
                     "device of this node\n\n";
  for (const Row& row : kRows) {
    text += fmt::format("  {:<34}{}\n", fmt::format("{} {}", row.flag, row.value), row.help);
  }
  return text;
}

}  // namespace amasia::devices
