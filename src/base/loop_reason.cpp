// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quantities.hpp"
#include "base/sharing_reason.hpp"

namespace amasia::base {
namespace {

using Form = LoopStatistics::Form;

constexpr std::size_t kMostNamed = 4;

std::string shares_of(const LoopStatistics& loop) {
  if (loop.per_node.size() > 2 * kMostNamed) {
    const auto [least, most] = std::minmax_element(
        loop.per_node.begin(), loop.per_node.end(),
        [](const auto& one, const auto& other) { return one.share < other.share; });
    return fmt::format("{:.2f} to {:.2f} on {} nodes", least->share, most->share,
                       loop.per_node.size());
  }
  std::string text;
  for (const LoopNodeStatistics& node : loop.per_node) {
    fmt::format_to(std::back_inserter(text), "{}{:.2f}", text.empty() ? "" : " : ", node.share);
  }
  return text;
}

std::string time_text(double nanos) {
  return nanos < 100 ? fmt::format("{:.1f} ns", nanos)
                     : duration_text(static_cast<Nanos>(nanos + 0.5));
}

// "an iteration takes 2.0 us on node 0, 6.0 us on node 1 (4.0 us of it stall)"; of many nodes the
// first ones. Empty where nothing was measured.
std::string times_text(const LoopStatistics& loop) {
  std::string text;
  std::size_t named = 0, measured = 0;
  for (const LoopNodeStatistics& node : loop.per_node) {
    if (node.probes == 0) continue;
    if (++measured > kMostNamed) continue;
    fmt::format_to(std::back_inserter(text), "{}{} on node {}", named++ == 0 ? "" : ", ",
                   time_text(node.compute_ns + node.stall_ns), node.id);
    if (node.stall_ns > 0.1 * node.compute_ns) {
      fmt::format_to(std::back_inserter(text), " ({} of it stall)", time_text(node.stall_ns));
    }
  }
  if (measured > named) fmt::format_to(std::back_inserter(text), " and so on");
  return text.empty() ? text : "an iteration takes " + text;
}

std::string of_pool(const LoopStatistics& loop) {
  const std::string times = times_text(loop);
  const auto works = [](const LoopNodeStatistics& node) { return node.csr.has_value(); };
  const auto working = std::count_if(loop.per_node.begin(), loop.per_node.end(), works);
  if (times.empty()) {
    return fmt::format("shared {}: it is over before any node has to ask for more",
                       shares_of(loop));
  }
  if (working == 1 && loop.per_node.size() > 1) {
    const auto only = std::find_if(loop.per_node.begin(), loop.per_node.end(), works);
    return fmt::format("on node {} only, but for probes ({}): {}", only->id, shares_of(loop),
                       times);
  }
  std::string text = fmt::format("shared {}: {}", shares_of(loop), times);
  std::string names;
  for (const LoopNodeStatistics& node : loop.per_node) {
    if (works(node)) continue;
    fmt::format_to(std::back_inserter(names), "{}{}", names.empty() ? "" : ", ", node.id);
  }
  if (!names.empty()) text += "; without node " + names + ", which would add too little";
  return text;
}

}  // namespace

std::string loop_heading(const LoopStatistics& loop) {
  std::string text = fmt::format("loop at {}, {}", loop.site, loop.kind);
  if (loop.chunk > 0) fmt::format_to(std::back_inserter(text), ",{}", loop.chunk);
  if (loop.schedule != loop.kind) text += ", carried out by " + loop.schedule;
  return text;
}

std::string runs_text(const LoopStatistics& loop) {
  if (loop.runs == 0) return "no run";
  const std::uint64_t mean = loop.iterations / loop.runs;
  const bool exact = mean * loop.runs == loop.iterations;
  return fmt::format("{} {} of {}{} iterations", loop.runs, loop.runs == 1 ? "run" : "runs",
                     exact ? "" : "about ", mean);
}

std::string loop_reason(const RegionStatistics& region, const LoopStatistics& loop) {
  using Phase = RegionStatistics::Phase;
  const bool alone = region.phase == Phase::kAlone || region.phase == Phase::kTrial;
  const std::string now = alone ? "on node 0 with its region now; before, " : "";
  switch (loop.form) {
    case Form::kBlocks: {
      const auto with_part = std::count_if(loop.per_node.begin(), loop.per_node.end(),
                                           [](const auto& node) { return node.share > 0; });
      if (with_part == 1 && loop.per_node.size() > 1) {
        const auto only = std::find_if(loop.per_node.begin(), loop.per_node.end(),
                                       [](const auto& node) { return node.share > 0; });
        return fmt::format("on node {} only, as its region is", only->id);
      }
      return now + fmt::format("shared {} by the speeds of its region", shares_of(loop));
    }
    case Form::kChunks:
      return now + fmt::format("dealt {} in turn, chunk by chunk, as the program asks",
                               shares_of(loop));
    case Form::kVectors:
      return now + fmt::format("dealt {}, whole vectors for each thread", shares_of(loop));
    case Form::kParts: {
      if (loop.per_node.empty()) return now + "handed out in parts";
      // gcc's loops are seen in no other run.
      const bool has_run_since = region.shared.runs > loop.runs;
      return now + fmt::format("shared {} in parts{}", shares_of(loop),
                               has_run_since ? " when it first ran"
                                             : ", at first by the speeds of its region");
    }
    case Form::kOrdered:
      return now + fmt::format("dealt {} in turn, so that its ordered parts go on",
                               shares_of(loop));
    case Form::kPool:
      break;
  }
  return now + of_pool(loop);
}

}  // namespace amasia::base
