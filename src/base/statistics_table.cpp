// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "base/quantities.hpp"
#include "base/sharing_reason.hpp"
#include "base/statistics.hpp"

namespace amasia::base {
namespace {

using Output = std::back_insert_iterator<std::string>;

constexpr std::size_t kWidth = 120;
constexpr std::size_t kIndent = 4;
constexpr std::size_t kSiteWidth = 44;
constexpr std::size_t kSharesWidth = 24;

// Long sites keep their end, where the line number is.
std::string shorten(std::string_view site, std::size_t width) {
  if (site.size() <= width) return std::string(site);
  return "…" + std::string(site.substr(site.size() - (width - 1)));
}

// As lines of at most kWidth columns, broken between words.
void append_wrapped(std::string& out, std::string_view text) {
  const std::string indent(kIndent, ' ');
  while (!text.empty()) {
    std::size_t length = text.size();
    if (length > kWidth - kIndent) {
      length = text.rfind(' ', kWidth - kIndent);
      if (length == std::string_view::npos || length == 0) length = text.size();
    }
    out += indent;
    out += text.substr(0, length);
    out += '\n';
    text.remove_prefix(std::min(text.size(), length + 1));
  }
}

void append_nodes(std::string& out, const std::vector<NodeStatistics>& nodes) {
  fmt::format_to(Output(out),
                 "{:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>10}\n", "node",
                 "read", "write", "upgrade", "pages in", "pages out", "evicted", "in", "out",
                 "messages", "stall");
  for (const NodeStatistics& node : nodes) {
    fmt::format_to(Output(out),
                   "{:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>10}\n",
                   node.id, node.faults_read, node.faults_write, node.faults_upgrade, node.pages_in,
                   node.pages_out, node.pages_evicted, volume_text(node.bytes_in),
                   volume_text(node.bytes_out), node.messages, duration_text(node.stall_ns));
  }
}

// Of the last run; what does not fit is left to the sentence below.
std::string shares_column(const RegionStatistics& region) {
  if (region.nodes < 2) return "-";
  const std::string text = shares_text(region);
  return text.size() <= kSharesWidth ? text : fmt::format("{} nodes", region.nodes);
}

std::string loop_line(const RegionStatistics& region, const LoopStatistics& loop) {
  return fmt::format("{}, {}: {}", loop_heading(loop), runs_text(loop), loop_reason(region, loop));
}

std::string left_out_line(const RegionStatistics& region) {
  return fmt::format("{} runs of further loops are not told apart", region.loops_left_out);
}

}  // namespace

std::string to_table(const JobStatistics& job) {
  std::string out;
  append_nodes(out, job.nodes);
  std::vector<RegionStatistics> regions = job.regions;
  sort_by_time(regions);
  fmt::format_to(Output(out), "{:<{}} {:>7} {:>5} {:>9} {:>10} {:>10}  {}\n", "region", kSiteWidth,
                 "runs", "nodes", "faults", "stall", "elapsed", "shares");
  for (const RegionStatistics& region : regions) {
    // Not by fmt's width, which counts the bytes of an ellipsis.
    const std::string site = shorten(region.site, kSiteWidth);
    const std::size_t columns = std::min(region.site.size(), kSiteWidth);
    out += site + std::string(kSiteWidth - columns, ' ');
    fmt::format_to(Output(out), " {:>7} {:>5} {:>9} {:>10} {:>10}  {}\n", region.runs, region.nodes,
                   region.faults, duration_text(region.stall_ns), duration_text(region.elapsed_ns),
                   shares_column(region));
    append_wrapped(out, sharing_reason(region));
    for (const LoopStatistics& loop : region.loops) append_wrapped(out, loop_line(region, loop));
    if (region.loops_left_out > 0) append_wrapped(out, left_out_line(region));
  }
  return out;
}

}  // namespace amasia::base
