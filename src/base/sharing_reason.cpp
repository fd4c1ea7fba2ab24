// SPDX-License-Identifier: Apache-2.0
#include "base/sharing_reason.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/quantities.hpp"

namespace amasia::base {
namespace {

using Phase = RegionStatistics::Phase;
using Rule = RegionStatistics::Rule;

constexpr std::size_t kMostSharesNamed = 8;

double work_of_origin(const RegionStatistics& region) {
  for (const RegionNodeStatistics& node : region.per_node) {
    if (node.id == 0) return std::clamp(node.work, 0.0, 1.0);
  }
  return 1;
}

// "; node 2 has no part: it would save less than it costs".
std::string about_dropped(const RegionStatistics& region) {
  std::string names;
  std::size_t count = 0;
  for (const RegionNodeStatistics& node : region.per_node) {
    if (!node.dropped) continue;
    names += fmt::format("{}{}", count++ == 0 ? "" : ", ", node.id);
  }
  if (count == 0) return "";
  const bool threshold = region.rule == Rule::kThreshold;
  if (count == 1) {
    return fmt::format("node {} would {}", names,
                       threshold ? "fault more often than breaks even" : "save less than it costs");
  }
  return fmt::format("nodes {} would {}", names,
                     threshold ? "fault more often than breaks even" : "save less than they cost");
}

std::string when_shared(const RegionStatistics& region, const char* how) {
  std::string text = fmt::format("shared {}{}: {} a run", shares_text(region), how,
                                 duration_text(region.shared.mean_ns()));
  if (region.predicted_alone_ns > 0) {
    text += fmt::format(", where node 0 alone {} {}", region.tried_alone ? "took" : "would take",
                        duration_text(region.predicted_alone_ns));
    text += region.tried_alone ? " when tried" : " (predicted)";
  }
  if (const std::string dropped = about_dropped(region); !dropped.empty()) text += "; " + dropped;
  return text;
}

// Which part of the cost is most of it, if one is.
const char* mostly(const RegionStatistics& region, Nanos cost) {
  const Nanos stall = std::min(region.stall_ns_expected, cost) + region.charged_ns;
  if (2 * stall > cost) return ", mostly stall,";
  if (2 * region.fork_join_ns > cost) return ", mostly to fork and join,";
  return "";
}

std::string when_alone(const RegionStatistics& region) {
  const Nanos alone = region.predicted_alone_ns, shared = region.predicted_shared_ns;
  const std::string dropped = about_dropped(region);
  if (region.rule == Rule::kThreshold && !dropped.empty()) return "on node 0 only: " + dropped;
  if (region.tried_alone && shared >= alone) {
    return fmt::format("on node 0 only: {} a run when tried, where sharing {} takes {}",
                       duration_text(alone), shares_text(region), duration_text(shared));
  }
  if (shared >= alone) {
    const auto kept =
        static_cast<Nanos>(std::llround(static_cast<double>(alone) * work_of_origin(region)));
    const Nanos cost = shared - kept, moved = alone - kept;
    return fmt::format("on node 0 only: sharing would cost {}{} for {} of work moved",
                       duration_text(cost), mostly(region, cost), duration_text(moved));
  }
  if (!dropped.empty()) return "on node 0 only: " + dropped;
  // Shares out of balance hide in the prediction how dear the first shared run was.
  return fmt::format("on node 0 only: the first shared run took {}, {} of it stall, alone {}",
                     duration_text(region.shared.mean_ns()),
                     duration_text(region.stall_ns_expected), duration_text(alone));
}

// It has not begun alone since.
std::string when_come_home(const RegionStatistics& region) {
  std::string text =
      fmt::format("brought home to node 0 on the way, as sharing had cost {} by then",
                  duration_text(region.lost_before_home_ns));
  if (region.runs_come_home < region.shared.runs) {
    text += fmt::format(" ({} of {} shared runs)", region.runs_come_home, region.shared.runs);
  }
  return text;
}

std::string when_elsewhere(const RegionStatistics& region) {
  std::string text = fmt::format("on node {} only{}: {} a run", region.elsewhere_node.value_or(0),
                                 region.gathered ? ", with other regions" : "",
                                 duration_text(region.elsewhere.mean_ns()));
  if (region.elsewhere.runs == 0) text = "to move to another node by its next run";
  if (region.rule == Rule::kThreshold) {
    return text + ", as page faults are too frequent to share it and cache misses are few";
  }
  if (region.predicted_alone_ns > 0) {
    text += fmt::format(", where node 0 alone would take {} (predicted)",
                        duration_text(region.predicted_alone_ns));
  }
  if (region.predicted_shared_ns > 0) {
    text += fmt::format(", and sharing {}", duration_text(region.predicted_shared_ns));
  }
  return text;
}

// Kept on one node for a reason that no measurement decides.
std::string when_kept(const RegionStatistics& region) {
  std::string text = "on node 0 only: " + region.single_node_reason;
  if (region.profiled) text += ", as an earlier run has found (--profile)";
  if (region.single_node_runs < region.runs) {
    text += fmt::format(" ({} of {} runs)", region.single_node_runs, region.runs);
  }
  return text;
}

std::string when_to_be_tried(const RegionStatistics& region) {
  std::string text = fmt::format(
      "to be shared again, to see what that takes now; {} a run shared so far",
      duration_text(region.shared.mean_ns()));
  if (region.alone.runs > 0) {
    text += fmt::format(", {} on node 0 alone", duration_text(region.alone.mean_ns()));
  }
  return text;
}

// Where it is not by what is cheaper that a region is shared, or not by that alone.
const char* how_decided(const RegionStatistics& region) {
  if (region.gathered) return ", as all regions together are quicker so";
  if (region.rule == Rule::kAlways) return " whatever it costs";
  return region.rule == Rule::kThreshold ? " as it faults less often than breaks even" : "";
}

// It would be shared by its own measurements.
std::string when_together(const RegionStatistics& region) {
  return fmt::format("on node 0 only: {}; shared {} it took {} a run, alone {}",
                     region.single_node_reason, shares_text(region),
                     duration_text(region.shared.mean_ns()),
                     duration_text(region.alone.mean_ns()));
}

std::string when_decided(const RegionStatistics& region) {
  switch (region.phase) {
    case Phase::kCold:
      return when_to_be_tried(region);
    case Phase::kWarm:
      return when_shared(region, " while data moved there");
    case Phase::kTrial:
      return fmt::format("on trial on node 0: shared {} it took {} a run, alone {} is predicted",
                         shares_text(region), duration_text(region.shared.mean_ns()),
                         duration_text(region.predicted_alone_ns));
    case Phase::kAlone:
      if (region.runs_come_home > 0 && region.alone.runs == 0) return when_come_home(region);
      return when_alone(region);
    case Phase::kElsewhere:
      return when_elsewhere(region);
    default:
      if (region.nodes == 1 && region.decided_runs() == region.runs) return when_together(region);
      return when_shared(region, how_decided(region));
  }
}

}  // namespace

std::string shares_text(const RegionStatistics& region) {
  std::vector<double> parts;
  for (const RegionNodeStatistics& node : region.per_node) {
    if (node.threads > 0) parts.push_back(node.work);
  }
  if (parts.size() > kMostSharesNamed) {
    const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
    return fmt::format("{:.2f} to {:.2f} on {} nodes", *least, *most, parts.size());
  }
  std::string text;
  for (const double part : parts) {
    fmt::format_to(std::back_inserter(text), "{}{:.2f}", text.empty() ? "" : " : ", part);
  }
  return text;
}

std::string sharing_reason(const RegionStatistics& region) {
  if (region.runs == 0) return "not known: it never ran to its end";
  if (region.shared.runs > 0) {
    std::string text = when_decided(region);
    if (region.profiled) text += "; it began as an earlier run had found (--profile)";
    if (region.misses_per_kilo) {
      text += fmt::format("; {:.2g} cache misses in 1000 instructions", *region.misses_per_kilo);
    }
    const std::uint64_t decided = region.decided_runs();
    if (decided < region.runs && !region.single_node_reason.empty()) {
      text += fmt::format("; {} of {} runs stayed on one node", region.runs - decided, region.runs);
    }
    return text;
  }
  if (!region.single_node_reason.empty()) return when_kept(region);
  return "not known: nothing was measured";
}

}  // namespace amasia::base
