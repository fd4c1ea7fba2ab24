// SPDX-License-Identifier: Apache-2.0
#include "tools/emulation.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tools/core_packing.hpp"

namespace amasia::tools {
namespace {

using base::LogLevel;

// Shorter ones cost more of the core than they gain (docs/decisions/emulation.md).
constexpr Nanos kMetronomePeriod = 500 * base::kMicrosecond;

std::string text_of(const char* path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Status check_sharing(const base::Options& options) {
  if (options.share == base::SharePolicy::kThreshold && options.calibration == "off") {
    return Error{"--share: 'threshold' is not allowed with --calibration off, for it decides by "
                 "the break-even that was calibrated; it takes auto, always or never",
                 0};
  }
  if (options.core_speeds.empty()) return base::ok();
  const auto given = static_cast<int>(std::ranges::count(options.core_speeds, ',')) + 1;
  if (given == options.nodes) return base::ok();
  return Error{fmt::format("--csr: '{}' is not allowed; it takes {} numbers, one for each node",
                           options.core_speeds, options.nodes),
               0};
}

Status settle_emulation(base::Options& options, bool pmix) {
  if (options.emulate.empty()) return base::ok();
  const auto shares = base::parse_shares(options.emulate);
  AMASIA_CHECK(shares.has_value(), "the table of options takes no other");
  const int count = static_cast<int>(shares->size());
  if (pmix) {
    return Error{"--emulate: '" + options.emulate +
                     "' is not allowed under a PMIx launcher, which has placed the nodes already "
                     "(--bootstrap=fork starts them here)",
                 0};
  }
  if (options.is_set("--nodes") && options.nodes != count) {
    return Error{fmt::format("--nodes: '{}' is not allowed with --emulate {}, which makes {} "
                             "node{}",
                             options.nodes, options.emulate, count, count == 1 ? "" : "s"),
                 0};
  }
  if (options.threads > 1) {
    return Error{fmt::format("--threads: '{}' is not allowed with --emulate, whose nodes have one "
                             "core each; it takes 0 or 1",
                             options.threads),
                 0};
  }
  if (!options.bind) {
    return Error{"--no-bind is not allowed with --emulate, which binds each node to one core", 0};
  }
  options.nodes = count;
  return base::ok();
}

Result<std::unique_ptr<Emulation>> Emulation::make(std::span<const double> shares,
                                                   const std::string& name) {
  const std::vector<int> cores = os::allowed_cores();
  if (cores.empty()) return Error{"--emulate: cannot tell which cores there are", 0};
  const CorePacking packing = pack_shares(shares, cores.size());
  if (packing.scale < 1) {
    base::log_line(LogLevel::kInfo,
                   "--emulate: the nodes need more than the {} core{} here; all run at {:.3f} of "
                   "what was asked for",
                   cores.size(), cores.size() == 1 ? "" : "s", packing.scale);
  }
  std::unique_ptr<Emulation> emulation(new Emulation);
  std::vector<os::CpuQuota> quotas;
  for (std::size_t node = 0; node < shares.size(); ++node) {
    Placed placed{cores[packing.core_of[node]], std::nullopt};
    if (packing.shares[node] < 1) {
      placed.quota = quotas.size();
      quotas.push_back(os::quota_of(packing.shares[node]));
    }
    emulation->nodes_.push_back(placed);
  }
  if (quotas.empty()) return emulation;
  const auto hierarchy =
      os::find_cpu_hierarchy(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup"));
  if (!hierarchy) return Error{"--emulate: this system has no control groups mounted", 0};
  auto groups = os::CpuGroups::make(*hierarchy, name, quotas);
  if (!groups.ok()) return Error{"--emulate: " + groups.error().message, groups.error().code};
  emulation->groups_.emplace(std::move(groups).value());
  return emulation;
}

void Emulation::keep_exactly() {
  std::set<int> cores;
  for (const Placed& node : nodes_) {
    if (node.quota) cores.insert(node.core);
  }
  for (const int core : cores) {
    auto metronome = std::make_unique<os::QuotaMetronome>();
    if (const Status started = metronome->start(core, kMetronomePeriod); !started.ok()) {
      base::log_line(LogLevel::kInfo,
                     "--emulate: nodes are slowed in steps of the kernel's tick, as {}",
                     started.error().message);
      return;
    }
    metronomes_.push_back(std::move(metronome));
  }
}

std::string Emulation::cpu_group_of(NodeId node) const {
  const auto& quota = nodes_[node.value].quota;
  return quota ? groups_->entry(*quota) : std::string();
}

std::vector<std::string> Emulation::folders() const {
  return groups_ ? groups_->folders() : std::vector<std::string>();
}

}  // namespace amasia::tools
