// SPDX-License-Identifier: Apache-2.0
// What has to be done to the control group file system for threads of several CPU quotas, as a list
// of steps, so that it can be held against both versions without either. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "os/cpu_quota.hpp"

namespace amasia::os {

struct CpuGroupStep {
  std::string path;
  std::string text;  // to be written into the file `path`; empty: `path` is a folder to be made
  bool is_above = false;  // of a group that was there before: to be taken back

  bool makes_folder() const { return text.empty(); }
  bool operator==(const CpuGroupStep&) const = default;
};

struct CpuGroupPlan {
  std::vector<CpuGroupStep> steps;   // in order; each needs those before it
  std::vector<std::string> entries;  // by quota: the file through which a thread enters
};

// A group `name` below the hierarchy's, with one below that for each quota, called 0, 1, …
// `withhold`: of the hierarchy's group and those above it, from the top, those that do not pass the
// controller on yet (version 2).
CpuGroupPlan plan_cpu_groups(const CpuHierarchy& hierarchy, const std::string& name,
                             std::span<const CpuQuota> quotas,
                             std::span<const std::string> withhold);

}  // namespace amasia::os
