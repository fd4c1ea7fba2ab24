// SPDX-License-Identifier: Apache-2.0
// The one list of what a policy can be made of: a line for each part, the first of a kind is the
// default. And how names and settings are read.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "devices/policy/line.hpp"
#include "devices/policy/plugin.hpp"
#include "devices/policy/scheduler.hpp"

namespace amasia::devices {
namespace policy {
namespace {

constexpr std::array<const Order*, 3> kOrders = {&kFifoOrder, &kFirstFitOrder, &kPriorityOrder};
constexpr std::array<const Placement*, 5> kPlacements = {
    &kTwoLevelPlacement, &kDelayPlacement, &kHybridPlacement, &kEarliestFinishPlacement,
    &kFirstDevicePlacement};
constexpr std::array<const EvictionPolicy*, 2> kEvictions = {&kLruEviction, &kCostEviction};
constexpr std::array<const Fairness*, 3> kFairness = {&kFairFairness, &kTurnFairness, &kNoFairness};

struct Parts {
  const Order* order = kOrders[0];
  const Placement* placement = kPlacements[0];
  const EvictionPolicy* eviction = kEvictions[0];
  const Fairness* fairness = kFairness[0];
};

struct Settings {
  LineSettings line;
  ClientTerms quota;
  std::optional<Nanos> ahead, turn;
};

template <typename Entries, typename Part>
bool take(const Entries& entries, std::string_view name, const Part*& part) {
  for (const Part* entry : entries) {
    if (entry->name != name) continue;
    part = entry;
    return true;
  }
  return false;
}

template <typename Visit>
void split(std::string_view text, std::string_view separators, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string names_of_parts() {
  std::string out;
  std::string_view kind;
  for (const PolicyPart& part : policy_parts()) {
    if (part.kind != kind) {
      out += fmt::format("{}{} ", kind.empty() ? "" : "; ", part.kind);
    } else {
      out += ", ";
    }
    kind = part.kind;
    out += part.name;
  }
  return out;
}

Result<Parts> read_parts(std::string_view names) {
  Parts out;
  std::string unknown;
  split(names, "+,", [&](std::string_view name) {
    if (take(kOrders, name, out.order) || take(kPlacements, name, out.placement) ||
        take(kEvictions, name, out.eviction) || take(kFairness, name, out.fairness)) {
      return;
    }
    if (unknown.empty()) unknown = name;
  });
  if (unknown.empty()) return out;
  return Error{fmt::format("'{}' is not a policy; there are: {}", unknown, names_of_parts()), 0};
}

// A number, and for bytes one of K, M, G behind it.
std::optional<double> read_number(std::string_view text, bool bytes) {
  double out = 0;
  double unit = 1;
  if (bytes && !text.empty()) {
    const char last = text.back();
    unit = last == 'K' ? 1024.0 : last == 'M' ? 1048576.0 : last == 'G' ? 1073741824.0 : 1.0;
    if (unit > 1) text.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(out)) {
    return std::nullopt;
  }
  return out * unit;
}

struct SettingLine {
  std::string_view name, what;
  double least, most;
  bool bytes;
  void (*set)(Settings&, double);
};
constexpr std::array<SettingLine, 6> kSettings = {{
    {"ageing-ms", "milliseconds that weigh as much as one step of priority", 0.001, 1e9, false,
     [](Settings& s, double v) { s.line.ageing = static_cast<Nanos>(v * 1e6); }},
    {"overtakes", "how often a task may be passed over before it gets a device", 0, 1e9, false,
     [](Settings& s, double v) { s.line.overtakes_max = static_cast<std::uint32_t>(v); }},
    {"ahead-us", "microseconds of brief tasks that a device is given ahead", 0, 1e6, false,
     [](Settings& s, double v) { s.ahead = static_cast<Nanos>(v * 1e3); }},
    {"turn-us", "microseconds that a client keeps a device while others wait", 0, 1e9, false,
     [](Settings& s, double v) { s.turn = static_cast<Nanos>(v * 1e3); }},
    {"quota-tasks", "tasks of a client in flight", 1, 1e9, false,
     [](Settings& s, double v) { s.quota.in_flight_max = static_cast<std::uint32_t>(v); }},
    {"quota-memory", "bytes of a client on a device; K, M, G", 1, 1e18, true,
     [](Settings& s, double v) { s.quota.bytes_max = static_cast<Bytes>(v); }},
}};

Result<Settings> read_settings(std::string_view text) {
  Settings out;
  std::string wrong;
  split(text, ",", [&](std::string_view setting) {
    if (!wrong.empty()) return;
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const std::string_view name = setting.substr(0, equals);
    const std::string_view value = setting.substr(std::min(equals + 1, setting.size()));
    std::string names;
    for (const SettingLine& line : kSettings) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", line.name);
      if (line.name != name) continue;
      const auto number = read_number(value, line.bytes);
      if (number && *number >= line.least && *number <= line.most) {
        line.set(out, *number);
        return;
      }
      wrong = fmt::format("{}={}: it takes a number ({}) of {} to {}", name, value, line.what,
                          line.least, line.most);
      return;
    }
    wrong = fmt::format("'{}' is not a setting of policies; there are: {}", name, names);
  });
  if (!wrong.empty()) return Error{wrong, 0};
  return out;
}

std::unique_ptr<Chooser> line_of(const Parts& parts, const Settings& settings) {
  return std::make_unique<Line>(*parts.order, *parts.placement, *parts.fairness, settings.line);
}

std::string name_of(const Parts& parts, std::string_view first) {
  return fmt::format("{}+{}+{}", first, parts.eviction->name, parts.fairness->name);
}

constexpr std::size_t kParts =
    kOrders.size() + kPlacements.size() + kEvictions.size() + kFairness.size();

std::array<PolicyPart, kParts> list_parts() {
  std::array<PolicyPart, kParts> out;
  std::size_t next = 0;
  const auto add = [&](std::string_view kind, const auto& entries) {
    for (const auto* entry : entries) {
      out[next++] = {kind, entry->name, entry->description, entry == entries[0]};
    }
  };
  add("order", kOrders);
  add("placement", kPlacements);
  add("eviction", kEvictions);
  add("fairness", kFairness);
  return out;
}

}  // namespace
}  // namespace policy

std::span<const PolicyPart> policy_parts() {
  static const auto parts = policy::list_parts();
  return parts;
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, std::string_view settings) {
  const auto parts = policy::read_parts(name);
  if (!parts.ok()) return parts.error();
  const auto read = policy::read_settings(settings);
  if (!read.ok()) return read.error();
  policy::Scheduler::Parts out;
  out.name = policy::name_of(parts.value(), fmt::format("{}+{}", parts.value().order->name,
                                                        parts.value().placement->name));
  out.chooser = policy::line_of(parts.value(), read.value());
  out.eviction = parts.value().eviction;
  out.quota = read.value().quota;
  out.ahead = read.value().ahead;
  out.turn = read.value().turn;
  out.counts_tasks = parts.value().fairness->counts_tasks;
  return std::unique_ptr<Policy>(std::make_unique<policy::Scheduler>(std::move(out)));
}

Result<std::unique_ptr<Policy>> make_policy_of(const amasia_device_policy& plugin,
                                               std::string_view options, std::string_view name,
                                               std::string_view settings) {
  const auto parts = policy::read_parts(name);
  if (!parts.ok()) return parts.error();
  const auto read = policy::read_settings(settings);
  if (!read.ok()) return read.error();
  auto chooser = policy::make_plugin_chooser(plugin, std::string(options));
  if (!chooser.ok()) return chooser.error();
  policy::Scheduler::Parts out;
  out.name = policy::name_of(parts.value(), plugin.name);
  out.chooser = std::move(chooser).value();
  out.eviction = parts.value().eviction;
  out.quota = read.value().quota;
  out.ahead = read.value().ahead;
  out.turn = read.value().turn;
  out.reserve = policy::line_of({}, read.value());
  return std::unique_ptr<Policy>(std::make_unique<policy::Scheduler>(std::move(out)));
}

}  // namespace amasia::devices
