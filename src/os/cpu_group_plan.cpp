// SPDX-License-Identifier: Apache-2.0
#include "os/cpu_group_plan.hpp"

namespace amasia::os {
namespace {

void limit_first_version(std::vector<CpuGroupStep>& steps, const std::string& folder,
                         const CpuQuota& quota) {
  steps.push_back({folder + "/cpu.cfs_period_us", std::to_string(quota.period_us)});
  steps.push_back({folder + "/cpu.cfs_quota_us", std::to_string(quota.runtime_us)});
}

// A group has the files of a controller once the group above it passes the controller on.
void pass_controller_on(std::vector<CpuGroupStep>& steps, const std::string& folder,
                        bool is_above) {
  steps.push_back({folder + "/cgroup.subtree_control", "+cpu", is_above});
}

// A new group is a domain, which single threads cannot enter.
void make_threaded(std::vector<CpuGroupStep>& steps, const std::string& folder) {
  steps.push_back({folder, ""});
  steps.push_back({folder + "/cgroup.type", "threaded"});
}

}  // namespace

CpuGroupPlan plan_cpu_groups(const CpuHierarchy& hierarchy, const std::string& name,
                             std::span<const CpuQuota> quotas,
                             std::span<const std::string> withhold) {
  AMASIA_CHECK(hierarchy.version == 1 || hierarchy.version == 2, "there are two versions");
  const bool first = hierarchy.version == 1;
  const std::string top = hierarchy.folder + "/" + name;
  CpuGroupPlan plan;
  if (first) {
    plan.steps.push_back({top, ""});
  } else {
    for (const std::string& folder : withhold) pass_controller_on(plan.steps, folder, true);
    make_threaded(plan.steps, top);
    pass_controller_on(plan.steps, top, false);
  }
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    const std::string folder = fmt::format("{}/{}", top, i);
    if (first) {
      plan.steps.push_back({folder, ""});
      limit_first_version(plan.steps, folder, quotas[i]);
    } else {
      make_threaded(plan.steps, folder);
      plan.steps.push_back(
          {folder + "/cpu.max", fmt::format("{} {}", quotas[i].runtime_us, quotas[i].period_us)});
    }
    plan.entries.push_back(folder + (first ? "/tasks" : "/cgroup.threads"));
  }
  return plan;
}

}  // namespace amasia::os
