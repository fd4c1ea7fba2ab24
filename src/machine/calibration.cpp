// SPDX-License-Identifier: Apache-2.0
#include "machine/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "machine/break_even.hpp"

namespace amasia::machine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr std::array<const char*, 3> kMethods = {"brief", "quick", "full"};
// Beyond these a figure is damage: nothing does 10^18 operations a second, or waits for a day.
constexpr double kMostOps = 1e18, kMostNanos = 86400e9;
constexpr std::uint32_t kMostCores = 1 << 20;

Json json_of(const Identity& identity) {
  Json nodes = Json::array(), settings = Json::object();
  for (const NodeIdentity& node : identity.nodes) {
    nodes.push_back({{"host", node.host}, {"cpu", node.cpu}, {"cores", node.cores}});
  }
  for (const auto& [name, value] : identity.settings) settings[name] = value;
  return {{"nodes", nodes}, {"settings", settings}};
}

Json json_of(const NodeCalibration& node) {
  return {{"core_ops_per_s", node.core_ops_per_s},
          {"fault_latency_ns", node.fault_latency_ns},
          {"page_stream_ns", node.page_stream_ns},
          {"break_even_ops_per_byte", node.break_even_ops_per_byte},
          {"break_even_ns_per_fault", node.break_even_ns_per_fault}};
}

Json json_of(const Calibration& calibration) {
  Json nodes = Json::array();
  for (const NodeCalibration& node : calibration.nodes) nodes.push_back(json_of(node));
  return {{"identity", json_of(calibration.identity)},
          {"method", kMethods[static_cast<std::size_t>(calibration.method)]},
          {"measured_s", calibration.measured_s},
          {"nodes", nodes}};
}

// Reads the document, and keeps the first thing that is wrong with it.
class Reader {
 public:
  std::optional<Error> error;

  const Json& member(const Json& of, const std::string& path, const char* name, Json::value_t type,
                     const char* type_name) {
    static const Json empty_object = Json::object(), empty_array = Json::array();
    if (of.is_object()) {
      const auto found = of.find(name);
      if (found != of.end() && found->type() == type) return *found;
    }
    fail(fmt::format("has no {} for {}{}", type_name, path, name));
    return type == Json::value_t::array ? empty_array : empty_object;
  }
  const Json& array(const Json& of, const std::string& path, const char* name) {
    return member(of, path, name, Json::value_t::array, "list");
  }
  const Json& object(const Json& of, const std::string& path, const char* name) {
    return member(of, path, name, Json::value_t::object, "object");
  }
  std::string text(const Json& of, const std::string& path, const char* name) {
    const Json& value = member(of, path, name, Json::value_t::string, "text");
    return value.is_string() ? value.get<std::string>() : std::string();
  }
  double number(const Json& of, const std::string& path, const char* name, double least,
                double most) {
    if (of.is_object() && of.contains(name) && of[name].is_number()) {
      const double value = of[name].get<double>();
      if (std::isfinite(value) && value >= least && value <= most) return value;
    }
    fail(fmt::format("has no number from {} to {} for {}{}", least, most, path, name));
    return least;
  }

  Identity identity(const Json& json, const std::string& path) {
    Identity out;
    for (const Json& node : array(json, path, "nodes")) {
      const std::string at = fmt::format("{}nodes[{}].", path, out.nodes.size());
      out.nodes.push_back(
          {.host = text(node, at, "host"),
           .cpu = text(node, at, "cpu"),
           .cores = static_cast<std::uint32_t>(number(node, at, "cores", 1, kMostCores))});
    }
    const Json& settings = object(json, path, "settings");
    for (const auto& [name, value] : settings.items()) {
      out.settings.emplace_back(name, text(settings, path + "settings.", name.c_str()));
    }
    std::sort(out.settings.begin(), out.settings.end());
    return out;
  }

  NodeCalibration node(const Json& json, const std::string& path) {
    return {
        .core_ops_per_s = number(json, path, "core_ops_per_s", 1, kMostOps),
        .fault_latency_ns = number(json, path, "fault_latency_ns", 0, kMostNanos),
        .page_stream_ns = number(json, path, "page_stream_ns", 0, kMostNanos),
        .break_even_ops_per_byte = number(json, path, "break_even_ops_per_byte", 0, kMostOps),
        .break_even_ns_per_fault = number(json, path, "break_even_ns_per_fault", 0, kMostNanos)};
  }

  Calibration calibration(const Json& json, const std::string& path) {
    Calibration out;
    out.identity = identity(object(json, path, "identity"), path + "identity.");
    const std::string method = text(json, path, "method");
    const auto known = std::find(kMethods.begin(), kMethods.end(), method);
    if (known == kMethods.end()) {
      fail(fmt::format("has '{}' for {}method, which takes brief, quick or full", method, path));
    } else {
      out.method = static_cast<Method>(known - kMethods.begin());
    }
    out.measured_s = static_cast<std::int64_t>(number(json, path, "measured_s", 0, 1e12));
    for (const Json& each : array(json, path, "nodes")) {
      out.nodes.push_back(node(each, fmt::format("{}nodes[{}].", path, out.nodes.size())));
    }
    if (out.nodes.empty() || out.nodes.size() != out.identity.nodes.size()) {
      fail(fmt::format("has {} nodes in {}nodes and {} in {}identity.nodes", out.nodes.size(), path,
                       out.identity.nodes.size(), path));
    }
    return out;
  }

 private:
  void fail(std::string what) {
    if (!error) error = Error{std::move(what), 0};
  }
};

}  // namespace

void fill_break_even_from_model(NodeCalibration& node) {
  const BreakEven found = model_break_even(node.core_ops_per_s, node.fault_latency_ns,
                                           node.fault_latency_ns, Transfers::kInTurns);
  node.break_even_ops_per_byte = found.ops_per_byte;
  node.break_even_ns_per_fault = found.fault_period_ns;
}

std::string to_json(const Identity& identity) {
  return json_of(identity).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Identity> parse_identity(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  Reader reader;
  Identity identity = reader.identity(document, "");
  if (reader.error) return *reader.error;
  return identity;
}

std::string to_json(const std::vector<Calibration>& calibrations) {
  Json list = Json::array();
  for (const Calibration& calibration : calibrations) list.push_back(json_of(calibration));
  const Json document = {{"amasia_calibration", kSchemaVersion}, {"calibrations", list}};
  // Names that are not UTF-8 are kept out by NodeIdentity; what a user's options hold is replaced.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<Calibration>> parse_calibrations(std::string_view text) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::parse_error& failure) {
    return Error{fmt::format("is no JSON from byte {} on", failure.byte), 0};
  } catch (const Json::out_of_range&) {
    return Error{"has a number that is larger than any can be", 0};
  }
  Reader reader;
  const double version = reader.number(document, "", "amasia_calibration", 1, 1e6);
  if (!reader.error && version != kSchemaVersion) {
    return Error{
        fmt::format("is of version {}; this amasia reads version {}", version, kSchemaVersion), 0};
  }
  std::vector<Calibration> out;
  for (const Json& each : reader.array(document, "", "calibrations")) {
    if (reader.error) break;
    out.push_back(reader.calibration(each, fmt::format("calibrations[{}].", out.size())));
  }
  if (reader.error) return *reader.error;
  return out;
}

const Calibration* find_calibration(const std::vector<Calibration>& all, const Identity& identity,
                                    std::int64_t now_s) {
  for (const Calibration& one : all) {
    if (one.identity != identity) continue;
    // A clock that was set back must not keep it for ever.
    const std::int64_t age = std::abs(now_s - one.measured_s);
    if (one.method == Method::kBrief && age > kBriefLifetime_s) continue;
    return &one;
  }
  return nullptr;
}

void add_calibration(std::vector<Calibration>& all, Calibration calibration) {
  AMASIA_CHECK(calibration.nodes.size() == calibration.identity.nodes.size(),
               "a calibration tells of each of its nodes");
  std::erase_if(all, [&](const Calibration& one) { return one.identity == calibration.identity; });
  all.insert(all.begin(), std::move(calibration));
  if (all.size() > kMostCalibrations) all.resize(kMostCalibrations);
}

}  // namespace amasia::machine
