// SPDX-License-Identifier: Apache-2.0
// Groups of both versions on a folder tree that stands for the kernel's file system: it makes the
// files of a group when the group is made, refuses what the kernel's documentation says is refused
// (Documentation/admin-guide/cgroup-v2.rst, "Threads" and "Enabling and Disabling"), and lets a
// group go with its files.
#include "os/cpu_group_plan.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace amasia::os {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<CpuGroupStep>;

const std::vector<CpuQuota> kQuotas = {quota_of(0.5), quota_of(0.33)};
// The process's group alone does not pass the controller on.
const std::vector<std::string> kMine = {"/c/me"};

TEST(CpuGroupPlan, OfTheFirstVersionSetsPeriodThenQuota) {
  const CpuGroupPlan plan = plan_cpu_groups({1, "/c/cpu/me", "/c/cpu"}, "job", kQuotas, {});
  EXPECT_EQ(plan.steps, (Steps{{"/c/cpu/me/job", ""},
                               {"/c/cpu/me/job/0", ""},
                               {"/c/cpu/me/job/0/cpu.cfs_period_us", "2000"},
                               {"/c/cpu/me/job/0/cpu.cfs_quota_us", "1000"},
                               {"/c/cpu/me/job/1", ""},
                               {"/c/cpu/me/job/1/cpu.cfs_period_us", "3030"},
                               {"/c/cpu/me/job/1/cpu.cfs_quota_us", "1000"}}));
  EXPECT_EQ(plan.entries,
            (std::vector<std::string>{"/c/cpu/me/job/0/tasks", "/c/cpu/me/job/1/tasks"}));
}

TEST(CpuGroupPlan, OfTheSecondVersionMakesThreadedGroups) {
  const CpuGroupPlan plan = plan_cpu_groups({2, "/c/me", "/c"}, "job", kQuotas, kMine);
  EXPECT_EQ(plan.steps, (Steps{{"/c/me/cgroup.subtree_control", "+cpu", true},
                               {"/c/me/job", ""},
                               {"/c/me/job/cgroup.type", "threaded"},
                               {"/c/me/job/cgroup.subtree_control", "+cpu"},
                               {"/c/me/job/0", ""},
                               {"/c/me/job/0/cgroup.type", "threaded"},
                               {"/c/me/job/0/cpu.max", "1000 2000"},
                               {"/c/me/job/1", ""},
                               {"/c/me/job/1/cgroup.type", "threaded"},
                               {"/c/me/job/1/cpu.max", "1000 3030"}}));
  EXPECT_EQ(plan.entries,
            (std::vector<std::string>{"/c/me/job/0/cgroup.threads", "/c/me/job/1/cgroup.threads"}));
}

// What the second version does with the steps. A group has cpu.max only if the one above passes the
// controller on; a threaded group's parent must be threaded too, or the process's group, which is
// the root of the threads.
class SecondVersion {
 public:
  // The process is in `mine`; the first of `groups`, from the top down to that, has the controller.
  SecondVersion(std::vector<std::string> groups, std::string mine, bool has_controller)
      : top_(groups.front()), mine_(std::move(mine)), has_controller_(has_controller) {
    for (const std::string& group : groups) groups_[group] = {};
  }
  // Empty, or what the kernel would complain about.
  std::string apply(const CpuGroupStep& step) {
    if (step.makes_folder()) {
      const std::string above = fs::path(step.path).parent_path();
      if (!groups_.contains(above)) return "no group above " + step.path;
      if (!groups_.emplace(step.path, Group{}).second) return step.path + " is there";
      return "";
    }
    const std::string folder = fs::path(step.path).parent_path();
    const std::string file = fs::path(step.path).filename();
    const auto found = groups_.find(folder);
    if (found == groups_.end()) return "no group " + folder;
    return write(found->first, found->second, file, step.text);
  }
  // Whether a single thread of the process may enter.
  bool takes_threads(const std::string& entry) const {
    const auto found = groups_.find(fs::path(entry).parent_path());
    return fs::path(entry).filename() == "cgroup.threads" && found != groups_.end() &&
           found->second.threaded;
  }
  std::string limit(const std::string& folder) const { return groups_.at(folder).limit; }

 private:
  struct Group {
    bool threaded = false, passes_on = false;
    std::string limit;
  };
  std::string write(const std::string& folder, Group& group, const std::string& file,
                    const std::string& text) {
    const std::string above = fs::path(folder).parent_path();
    const bool has = folder == top_ ? has_controller_ : groups_.at(above).passes_on;
    if (file == "cgroup.subtree_control") {
      if (text != "+cpu" || !has) return "no controller for " + folder;
      group.passes_on = true;
    } else if (file == "cgroup.type") {
      if (text != "threaded" || folder == mine_) return "no such type of " + folder;
      if (above != mine_ && !groups_.at(above).threaded) return above + " is no threaded domain";
      group.threaded = true;
    } else if (file == "cpu.max") {
      if (!has) return folder + " has no cpu.max";
      group.limit = text;
    } else {
      return "no file " + file;
    }
    return "";
  }
  std::string top_, mine_;
  bool has_controller_;
  std::map<std::string, Group> groups_;
};

TEST(CpuGroupPlan, IsWhatTheSecondVersionTakes) {
  SecondVersion kernel(kMine, "/c/me", true);
  const CpuGroupPlan plan = plan_cpu_groups({2, "/c/me", "/c"}, "job", kQuotas, kMine);
  for (const CpuGroupStep& step : plan.steps) EXPECT_EQ(kernel.apply(step), "");
  for (const std::string& entry : plan.entries) EXPECT_TRUE(kernel.takes_threads(entry)) << entry;
  EXPECT_EQ(kernel.limit("/c/me/job/1"), "1000 3030");
}

// Each step is needed: without it the kernel refuses a later one, or takes no thread, or no limit
// is set.
TEST(CpuGroupPlan, HasNoStepTooMany) {
  const CpuGroupPlan plan = plan_cpu_groups({2, "/c/me", "/c"}, "job", kQuotas, kMine);
  for (std::size_t left_out = 0; left_out < plan.steps.size(); ++left_out) {
    SecondVersion kernel(kMine, "/c/me", true);
    bool works = true;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (i != left_out) works = works && kernel.apply(plan.steps[i]).empty();
    }
    for (std::size_t i = 0; works && i < plan.entries.size(); ++i) {
      const std::string folder = fs::path(plan.entries[i]).parent_path();
      works = kernel.takes_threads(plan.entries[i]) && !kernel.limit(folder).empty();
    }
    EXPECT_FALSE(works) << plan.steps[left_out].path;
  }
}

// As in a service's group that nothing was passed on to.
TEST(CpuGroupPlan, PassesTheControllerOnFromTheTop) {
  const std::vector<std::string> groups = {"/c", "/c/service", "/c/service/me"};
  SecondVersion kernel(groups, "/c/service/me", true);
  const CpuGroupPlan plan =
      plan_cpu_groups({2, "/c/service/me", "/c"}, "job", kQuotas, groups);
  for (const CpuGroupStep& step : plan.steps) EXPECT_EQ(kernel.apply(step), "");
  for (const std::string& entry : plan.entries) EXPECT_TRUE(kernel.takes_threads(entry)) << entry;
  EXPECT_EQ(kernel.limit("/c/service/me/job/0"), "1000 2000");
  EXPECT_EQ(std::count_if(plan.steps.begin(), plan.steps.end(),
                          [](const CpuGroupStep& step) { return step.is_above; }),
            3) << "what was there before gets back its state";
}

// As on systems whose cpu controller the first version has.
TEST(CpuGroupPlan, EndsAtItsFirstStepWithoutTheController) {
  SecondVersion kernel(kMine, "/c/me", false);
  const CpuGroupPlan plan = plan_cpu_groups({2, "/c/me", "/c"}, "job", kQuotas, kMine);
  EXPECT_NE(kernel.apply(plan.steps.front()), "");
}

// The real thing on folders: where files can be written but are not there, nothing is left.
TEST(CpuGroups, OfTheSecondVersionWriteWhatIsPlannedAndLeaveNothing) {
  const std::string place = testing::TempDir() + fmt::format("cpu_groups_v2_{}", ::getpid());
  fs::create_directory(place);
  // No file: the controller cannot be passed on.
  const auto none = CpuGroups::make({2, place, place}, "job", kQuotas);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("'+cpu' to " + place + "/cgroup.subtree_control"),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(place));
  // The file is there, but a new folder has none: the group that was made goes again.
  std::ofstream(place + "/cgroup.subtree_control") << "";
  const auto half = CpuGroups::make({2, place, place}, "job", kQuotas);
  ASSERT_FALSE(half.ok());
  EXPECT_NE(half.error().message.find("'threaded' to " + place + "/job/cgroup.type"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(place + "/job"));
  std::string written;
  std::ifstream(place + "/cgroup.subtree_control") >> written;
  EXPECT_EQ(written, "-cpu") << "taken back";
  fs::remove_all(place);
}

}  // namespace
}  // namespace amasia::os
