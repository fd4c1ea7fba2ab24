// SPDX-License-Identifier: Apache-2.0
#include "base/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "base/check.hpp"
#include "base/json_text.hpp"
#include "base/sharing_reason.hpp"

namespace amasia::base {
namespace {

using Output = std::back_insert_iterator<std::string>;

constexpr std::array<const char*, 7> kPhases = {"",       "cold",  "warm",     "trial",
                                                "shared", "alone", "elsewhere"};
constexpr std::array<const char*, 6> kForms = {"blocks", "chunks",  "vectors",
                                               "pool",   "ordered", "parts"};
constexpr std::array<const char*, 3> kRules = {"prediction", "always", "threshold"};

void append_text_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    out += json_text(text);
  }
}

void append_node(std::string& out, const NodeStatistics& node) {
  fmt::format_to(Output(out),
                 "{{\"id\":{},\"pid\":{},\"faults_read\":{},\"faults_write\":{},"
                 "\"faults_upgrade\":{},\"pages_in\":{},\"pages_out\":{},\"bytes_in\":{},"
                 "\"bytes_out\":{},\"messages\":{},\"stall_ns\":{},\"pages_offered\":{},"
                 "\"pages_evicted\":{},\"memory_max\":{}}}",
                 node.id, node.pid, node.faults_read, node.faults_write, node.faults_upgrade,
                 node.pages_in, node.pages_out, node.bytes_in, node.bytes_out, node.messages,
                 node.stall_ns, node.pages_offered, node.pages_evicted, node.memory_max);
}

// An array of what `one` appends for each.
template <typename Values, typename One>
void append_list(std::string& out, const Values& values, One one) {
  out += '[';
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ',';
    first = false;
    one(out, value);
  }
  out += ']';
}

void append_ratio(std::string& out, const std::optional<double>& ratio) {
  if (ratio) {
    fmt::format_to(Output(out), "{:.4g}", *ratio);
  } else {
    out += "null";
  }
}

void append_part(std::string& out, const RegionNodeStatistics& node) {
  fmt::format_to(Output(out),
                 "{{\"id\":{},\"threads\":{},\"work\":{:.4f},\"busy_ns\":{},\"stall_ns\":{},"
                 "\"dropped\":{},\"cache_misses_per_1000_instructions\":",
                 node.id, node.threads, node.work, node.busy_ns, node.stall_ns, node.dropped);
  append_ratio(out, node.misses_per_kilo);
  out += '}';
}

void append_time(std::string& out, const char* key, Nanos time) {
  if (time > 0) {
    fmt::format_to(Output(out), ",\"{}\":{}", key, time);
  } else {
    fmt::format_to(Output(out), ",\"{}\":null", key);
  }
}

void append_outcome(std::string& out, const char* key, const RegionOutcome& outcome) {
  fmt::format_to(Output(out),
                 ",\"{}\":{{\"runs\":{},\"elapsed_ns\":{},\"settled_runs\":{},\"settled_ns\":{}}}",
                 key, outcome.runs, outcome.elapsed_ns, outcome.settled_runs, outcome.settled_ns);
}

void append_loop_part(std::string& out, const LoopNodeStatistics& node) {
  fmt::format_to(Output(out), "{{\"id\":{},\"share\":{:.4f},\"csr\":", node.id, node.share);
  append_ratio(out, node.csr);
  fmt::format_to(Output(out), ",\"probes\":{}", node.probes);
  if (node.probes > 0) {
    fmt::format_to(Output(out), ",\"compute_ns\":{:.1f},\"stall_ns\":{:.1f}}}", node.compute_ns,
                   node.stall_ns);
  } else {
    out += ",\"compute_ns\":null,\"stall_ns\":null}";
  }
}

void append_loop(std::string& out, const RegionStatistics& region, const LoopStatistics& loop) {
  out += "{\"site\":";
  out += json_text(loop.site);
  out += ",\"kind\":";
  out += json_text(loop.kind);
  out += ",\"schedule\":";
  out += json_text(loop.schedule);
  fmt::format_to(Output(out),
                 ",\"form\":\"{}\",\"chunk\":{},\"runs\":{},\"iterations\":{},"
                 "\"per_node\":",
                 name_of(loop.form), loop.chunk, loop.runs, loop.iterations);
  append_list(out, loop.per_node, append_loop_part);
  append_time(out, "elapsed_ns", loop.elapsed_ns);
  fmt::format_to(Output(out), ",\"predicted_runs\":{}", loop.predicted_runs);
  append_time(out, "predicted_ns", loop.predicted_ns);
  append_time(out, "measured_ns", loop.measured_ns);
  out += ",\"reason\":";
  out += json_text(loop_reason(region, loop));
  out += '}';
}

void append_region(std::string& out, const RegionStatistics& region) {
  out += "{\"site\":";
  out += json_text(region.site);
  fmt::format_to(Output(out), ",\"runs\":{},\"nodes\":{},\"single_node_reason\":", region.runs,
                 region.nodes);
  append_text_or_null(out, region.single_node_reason);
  fmt::format_to(Output(out),
                 ",\"single_node_runs\":{},\"faults\":{},\"stall_ns\":{},\"elapsed_ns\":{},"
                 "\"reason\":",
                 region.single_node_runs, region.faults, region.stall_ns, region.elapsed_ns);
  out += json_text(sharing_reason(region));
  out += ",\"phase\":";
  append_text_or_null(out, name_of(region.phase));
  fmt::format_to(Output(out), ",\"rule\":\"{}\",\"csr\":", name_of(region.rule));
  append_list(out, region.csr, append_ratio);
  out += ",\"per_node\":";
  append_list(out, region.per_node, append_part);
  append_time(out, "predicted_alone_ns", region.predicted_alone_ns);
  append_time(out, "predicted_shared_ns", region.predicted_shared_ns);
  fmt::format_to(Output(out),
                 ",\"stall_ns_expected\":{},\"charged_ns\":{},\"fork_join_ns\":{},"
                 "\"tried_alone\":{}",
                 region.stall_ns_expected, region.charged_ns, region.fork_join_ns,
                 region.tried_alone);
  append_outcome(out, "shared", region.shared);
  append_outcome(out, "alone", region.alone);
  append_outcome(out, "elsewhere", region.elsewhere);
  out += ",\"elsewhere_node\":";
  append_ratio(out, region.elsewhere_node);
  fmt::format_to(Output(out),
                 ",\"profiled\":{},\"until_retried_ns\":{},\"gathered\":{},\"runs_come_home\":{},"
                 "\"lost_before_home_ns\":{}",
                 region.profiled, region.until_retried_ns, region.gathered, region.runs_come_home,
                 region.lost_before_home_ns);
  out += ",\"cache_misses_per_1000_instructions\":";
  append_ratio(out, region.misses_per_kilo);
  out += ",\"work_of_first_half\":";
  append_ratio(out, region.work_of_first_half);
  out += ",\"loops\":";
  append_list(out, region.loops, [&region](std::string& to, const LoopStatistics& loop) {
    append_loop(to, region, loop);
  });
  fmt::format_to(Output(out), ",\"loops_left_out\":{}}}", region.loops_left_out);
}

}  // namespace

const char* name_of(RegionStatistics::Phase phase) {
  const auto index = static_cast<std::size_t>(phase);
  AMASIA_CHECK(index < kPhases.size(), "every phase has a name");
  return kPhases[index];
}

const char* name_of(RegionStatistics::Rule rule) {
  const auto index = static_cast<std::size_t>(rule);
  AMASIA_CHECK(index < kRules.size(), "every rule has a name");
  return kRules[index];
}

const char* name_of(LoopStatistics::Form form) {
  const auto index = static_cast<std::size_t>(form);
  AMASIA_CHECK(index < kForms.size(), "every form has a name");
  return kForms[index];
}

std::optional<LoopStatistics::Form> form_named(std::string_view name) {
  const auto found = std::find(kForms.begin(), kForms.end(), name);
  if (found == kForms.end()) return std::nullopt;
  return static_cast<LoopStatistics::Form>(found - kForms.begin());
}

std::optional<RegionStatistics::Rule> rule_named(std::string_view name) {
  const auto found = std::find(kRules.begin(), kRules.end(), name);
  if (found == kRules.end()) return std::nullopt;
  return static_cast<RegionStatistics::Rule>(found - kRules.begin());
}

std::optional<RegionStatistics::Phase> phase_named(std::string_view name) {
  const auto found = std::find(kPhases.begin(), kPhases.end(), name);
  if (found == kPhases.end()) return std::nullopt;
  return static_cast<RegionStatistics::Phase>(found - kPhases.begin());
}

void sort_by_time(std::vector<RegionStatistics>& regions) {
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) {
    if (a.elapsed_ns != b.elapsed_ns) return a.elapsed_ns > b.elapsed_ns;
    return a.site < b.site;
  });
}

std::string to_json(const JobStatistics& job) {
  std::string out = "{\"nodes\":";
  append_list(out, job.nodes, append_node);
  out += ",\"regions\":";
  append_list(out, job.regions, append_region);
  out += "}\n";
  return out;
}

}  // namespace amasia::base
