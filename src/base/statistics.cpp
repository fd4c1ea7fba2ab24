// SPDX-License-Identifier: Apache-2.0
#include "base/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace amasia::base {
namespace {

using Output = std::back_insert_iterator<std::string>;

// JSON strings carry any site name: control characters escaped, bytes above 0x7f as they are.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (byte < 0x20) {
      fmt::format_to(Output(out), "\\u{:04x}", byte);
    } else {
      out += character;
    }
  }
  out += '"';
}

void append_node(std::string& out, const NodeStatistics& node) {
  fmt::format_to(Output(out),
                 "{{\"id\":{},\"pid\":{},\"faults_read\":{},\"faults_write\":{},"
                 "\"faults_upgrade\":{},\"pages_in\":{},\"pages_out\":{},\"bytes_in\":{},"
                 "\"bytes_out\":{},\"messages\":{},\"stall_ns\":{},\"pages_evicted\":{},"
                 "\"memory_max\":{}}}",
                 node.id, node.pid, node.faults_read, node.faults_write, node.faults_upgrade,
                 node.pages_in, node.pages_out, node.bytes_in, node.bytes_out, node.messages,
                 node.stall_ns, node.pages_evicted, node.memory_max);
}

void append_region(std::string& out, const RegionStatistics& region) {
  out += "{\"site\":";
  append_quoted(out, region.site);
  fmt::format_to(Output(out), ",\"runs\":{},\"nodes\":{},\"single_node_reason\":", region.runs,
                 region.nodes);
  if (region.single_node_reason[0] == '\0') {
    out += "null";
  } else {
    append_quoted(out, region.single_node_reason);
  }
  fmt::format_to(Output(out),
                 ",\"single_node_runs\":{},\"faults\":{},\"stall_ns\":{},\"elapsed_ns\":{}}}",
                 region.single_node_runs, region.faults, region.stall_ns, region.elapsed_ns);
}

// A duration with three significant digits or so, in the unit that keeps it short.
std::string duration(Nanos nanos) {
  const auto value = static_cast<double>(nanos);
  if (nanos < 10 * kMicrosecond) return fmt::format("{} ns", nanos);
  if (nanos < 10 * kMillisecond) return fmt::format("{:.1f} us", value / 1e3);
  if (nanos < 10 * kSecond) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string volume(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 10 * kKiB) return fmt::format("{} B", bytes);
  if (bytes < 10 * kMiB) return fmt::format("{:.1f} KiB", value / static_cast<double>(kKiB));
  if (bytes < 10 * kGiB) return fmt::format("{:.1f} MiB", value / static_cast<double>(kMiB));
  return fmt::format("{:.2f} GiB", value / static_cast<double>(kGiB));
}

// Long sites keep their end, where the line number is.
std::string shorten(std::string_view site, std::size_t width) {
  if (site.size() <= width) return std::string(site);
  return "…" + std::string(site.substr(site.size() - (width - 1)));
}

}  // namespace

void merge_regions(std::vector<RegionStatistics>& into, std::span<const RegionStatistics> from) {
  for (const RegionStatistics& region : from) {
    const auto known = std::find_if(into.begin(), into.end(), [&](const RegionStatistics& other) {
      return std::strncmp(other.site, region.site, RegionStatistics::kSiteSize) == 0;
    });
    if (known == into.end()) {
      into.push_back(region);
    } else {
      known->faults += region.faults;
      known->stall_ns += region.stall_ns;
    }
  }
}

std::string to_json(const JobStatistics& job) {
  std::string out = "{\"nodes\":[";
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    if (i > 0) out += ',';
    append_node(out, job.nodes[i]);
  }
  out += "],\"regions\":[";
  for (std::size_t i = 0; i < job.regions.size(); ++i) {
    if (i > 0) out += ',';
    append_region(out, job.regions[i]);
  }
  out += "]}\n";
  return out;
}

std::string to_table(const JobStatistics& job) {
  std::string out;
  fmt::format_to(Output(out),
                 "{:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>10}\n", "node",
                 "read", "write", "upgrade", "pages in", "pages out", "evicted", "in", "out",
                 "messages", "stall");
  for (const NodeStatistics& node : job.nodes) {
    fmt::format_to(Output(out),
                   "{:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>10}\n",
                   node.id, node.faults_read, node.faults_write, node.faults_upgrade, node.pages_in,
                   node.pages_out, node.pages_evicted, volume(node.bytes_in),
                   volume(node.bytes_out), node.messages, duration(node.stall_ns));
  }
  std::vector<RegionStatistics> regions = job.regions;
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) {
    if (a.elapsed_ns != b.elapsed_ns) return a.elapsed_ns > b.elapsed_ns;
    return std::strcmp(a.site, b.site) < 0;
  });
  fmt::format_to(Output(out), "{:<40} {:>7} {:>5} {:>9} {:>10} {:>10}  {}\n", "region", "runs",
                 "nodes", "faults", "stall", "elapsed", "on one node because");
  for (const RegionStatistics& region : regions) {
    std::string reason(region.single_node_reason);
    if (!reason.empty() && region.single_node_runs < region.runs) {
      reason = fmt::format("{} ({} of {} runs)", reason, region.single_node_runs, region.runs);
    }
    fmt::format_to(Output(out), "{:<40} {:>7} {:>5} {:>9} {:>10} {:>10}  {}\n",
                   shorten(region.site, 40), region.runs, region.nodes, region.faults,
                   duration(region.stall_ns), duration(region.elapsed_ns),
                   reason.empty() ? "-" : reason);
  }
  return out;
}

}  // namespace amasia::base
