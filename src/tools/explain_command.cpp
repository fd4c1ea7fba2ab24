// SPDX-License-Identifier: Apache-2.0
#include "tools/explain_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "launch/launch.hpp"

namespace amasia::tools {
namespace {

using base::duration_text;
using base::RegionNodeStatistics;
using base::RegionOutcome;
using base::RegionStatistics;
using Output = std::back_insert_iterator<std::string>;

// A file may come from anywhere: what would move a terminal's cursor is not printed.
std::string printable(std::string text) {
  for (char& byte : text) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = '?';
  }
  return text;
}

void append_runs(std::string& out, const RegionStatistics& region) {
  fmt::format_to(Output(out), "  {} in {} {}", duration_text(region.elapsed_ns), region.runs,
                 region.runs == 1 ? "run" : "runs");
  const std::uint64_t decided = region.decided_runs();
  if (decided > 0) {
    fmt::format_to(Output(out), ": {} shared, {} on node 0 alone", region.shared.runs,
                   region.alone.runs);
    if (region.elsewhere.runs > 0) {
      fmt::format_to(Output(out), ", {} on another node", region.elsewhere.runs);
    }
    if (decided < region.runs) {
      fmt::format_to(Output(out), ", {} for another reason", region.runs - decided);
    }
  }
  out += '\n';
}

std::string speed_of_core(const RegionStatistics& region, std::uint32_t node) {
  if (node >= region.csr.size() || !region.csr[node]) return "-";
  return fmt::format("{:.2f}", *region.csr[node]);
}

void append_nodes(std::string& out, const RegionStatistics& region) {
  if (region.per_node.empty()) return;
  fmt::format_to(Output(out), "    {:>9} {:>8} {:>8} {:>10} {:>10} {:>8}{}\n", "node", "threads",
                 "work", "computing", "stall", "CSR",
                 region.misses_per_kilo ? "   misses of 1000" : "");
  for (const RegionNodeStatistics& node : region.per_node) {
    const std::string speed = speed_of_core(region, node.id);
    if (node.threads == 0) {
      fmt::format_to(Output(out), "    {:>9} {:>8} {:>8} {:>10} {:>10} {:>8}", node.id, "-", "-",
                     "-", "-", speed);
    } else {
      fmt::format_to(Output(out), "    {:>9} {:>8} {:>8.2f} {:>10} {:>10} {:>8}", node.id,
                     node.threads, node.work, duration_text(node.busy_ns),
                     duration_text(node.stall_ns), speed);
    }
    if (region.misses_per_kilo) {
      fmt::format_to(Output(out), " {:>16}",
                     node.misses_per_kilo ? fmt::format("{:.2f}", *node.misses_per_kilo) : "-");
    }
    out += node.dropped ? "  has no part any more\n" : "\n";
  }
}

void append_outcome(std::string& out, const char* where, Nanos predicted, bool tried,
                    const RegionOutcome& outcome) {
  const Nanos measured = outcome.mean_ns();
  std::string off = "-";
  if (predicted > 0 && outcome.runs > 0) {
    const double ratio = static_cast<double>(measured) / static_cast<double>(predicted);
    off = fmt::format("{:+.1f} %", 100 * (ratio - 1));
  }
  const std::uint64_t runs = outcome.settled_runs > 0 ? outcome.settled_runs : outcome.runs;
  fmt::format_to(
      Output(out), "    {:>9} {:>10} {:>10} {:>10}  {}", where,
      predicted > 0 ? duration_text(predicted) : "-",
      outcome.runs > 0 ? duration_text(measured) : "-", off,
      outcome.runs > 0 ? fmt::format("{} {}", runs, runs == 1 ? "run" : "runs") : "never ran so");
  if (outcome.runs > 0 && outcome.settled_runs == 0) out += ", data moving";
  if (tried) out += "; predicted by a trial";
  out += '\n';
}

void append_loop_nodes(std::string& out, const base::LoopStatistics& loop) {
  fmt::format_to(Output(out), "      {:>7} {:>8} {:>8} {:>10} {:>10}  {}\n", "node", "share", "CSR",
                 "computing", "stall", "per iteration, measured in");
  for (const base::LoopNodeStatistics& node : loop.per_node) {
    const std::string speed = node.csr ? fmt::format("{:.2f}", *node.csr) : "-";
    const bool known = node.probes > 0;
    const auto time = [&](double nanos) { return known ? fmt::format("{:.1f} ns", nanos) : "-"; };
    fmt::format_to(Output(out), "      {:>7} {:>8.2f} {:>8} {:>10} {:>10}  {}\n", node.id,
                   node.share, speed, time(node.compute_ns), time(node.stall_ns),
                   known ? fmt::format("{} {}", node.probes, node.probes == 1 ? "run" : "runs")
                         : "no run");
  }
}

void append_loop(std::string& out, const RegionStatistics& region,
                 const base::LoopStatistics& loop) {
  fmt::format_to(Output(out), "    {}, {}\n", printable(base::loop_heading(loop)),
                 base::runs_text(loop));
  fmt::format_to(Output(out), "      {}\n", printable(base::loop_reason(region, loop)));
  if (loop.form != base::LoopStatistics::Form::kPool) return;
  append_loop_nodes(out, loop);
  if (loop.predicted_runs == 0) return;
  const auto runs = static_cast<Nanos>(std::min<std::uint64_t>(loop.predicted_runs, 1'000'000'000));
  const double off =
      static_cast<double>(loop.measured_ns) / std::max(1.0, static_cast<double>(loop.predicted_ns));
  fmt::format_to(Output(out), "      predicted {} a run, measured {} ({:+.1f} %), mean of {} {}\n",
                 duration_text(loop.predicted_ns / runs), duration_text(loop.measured_ns / runs),
                 100 * (off - 1), loop.predicted_runs, loop.predicted_runs == 1 ? "run" : "runs");
}

void append_outcomes(std::string& out, const RegionStatistics& region) {
  fmt::format_to(Output(out), "    {:>9} {:>10} {:>10} {:>10}  {}\n", "one run", "predicted",
                 "measured", "off by", "mean of");
  append_outcome(out, "shared", region.predicted_shared_ns, false, region.shared);
  append_outcome(out, "on node 0", region.predicted_alone_ns, region.tried_alone, region.alone);
  if (region.elsewhere.runs == 0) return;
  const std::string where = fmt::format("on node {}", region.elsewhere_node.value_or(0));
  append_outcome(out, where.c_str(), 0, false, region.elsewhere);
}

void append_region(std::string& out, const RegionStatistics& region) {
  out += printable(region.site) + '\n';
  append_runs(out, region);
  out += "  " + printable(base::sharing_reason(region)) + '\n';
  if (const std::string advice = base::sharing_advice(region); !advice.empty()) {
    out += "  " + advice + '\n';
  }
  if (region.work_of_first_half) {
    fmt::format_to(Output(out),
                   "  its iterations are unlike: the first half is {:.2f} of the work\n",
                   *region.work_of_first_half);
  }
  append_nodes(out, region);
  if (region.decided_runs() > 0) append_outcomes(out, region);
  for (const base::LoopStatistics& loop : region.loops) append_loop(out, region, loop);
  if (region.loops_left_out > 0) {
    fmt::format_to(Output(out), "    {} runs of further loops are not told apart\n",
                   region.loops_left_out);
  }
}

int refuse(const std::string& sentence) {
  base::log_line(base::LogLevel::kError, "{}", sentence);
  return 2;
}

}  // namespace

std::string explanation(const base::JobStatistics& job) {
  std::vector<RegionStatistics> regions = job.regions;
  base::sort_by_time(regions);
  Nanos elapsed = 0;
  bool measured = false;
  for (const RegionStatistics& region : regions) {
    elapsed += region.elapsed_ns;
    measured = measured || !region.per_node.empty();
  }
  std::string out = fmt::format("{} {}, {} {} of {} in all\n", job.nodes.size(),
                                job.nodes.size() == 1 ? "node" : "nodes", regions.size(),
                                regions.size() == 1 ? "parallel region" : "parallel regions",
                                duration_text(elapsed));
  if (measured) {
    out +=
        "For each node its threads, its part of the work, how long a thread computed and waited "
        "for\n"
        "pages (stall) in the latest shared run, and the speed of a core, the fastest being 1.\n";
  }
  for (const RegionStatistics& region : regions) {
    out += '\n';
    append_region(out, region);
  }
  return out;
}

int explain_command(std::span<const char* const> arguments) {
  if (arguments.size() != 1) {
    return refuse(fmt::format(
        "explain takes one file, written by 'amasia run --stats=FILE', not {}", arguments.size()));
  }
  const auto job = launch::load_statistics(arguments[0]);
  if (!job.ok()) return refuse(job.error().message);
  std::fputs(explanation(job.value()).c_str(), stdout);
  return 0;
}

}  // namespace amasia::tools
