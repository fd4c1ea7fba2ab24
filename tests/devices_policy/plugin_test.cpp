// SPDX-License-Identifier: Apache-2.0
// The example plug-in, built as its first comment says, in the place of order and placement; and
// what happens to plug-ins that break the rules or are none.
#include <gtest/gtest.h>

#include <algorithm>

#include "devices/policy/plugin_file.hpp"
#include "devices/policy/virtual_node.hpp"

namespace amasia::devices::policy {
namespace {

using simulation::Outcome;
using simulation::virtual_device;
using simulation::VirtualNode;
using simulation::Workload;

Workload hundred() {
  Workload out;
  for (std::uint64_t i = 0; i < 100; ++i) {
    out.tasks.push_back({.client = static_cast<std::uint32_t>(1 + i % 3),
                         .work = 1 + i * 37 % 100,
                         .cost_ns = 1000,
                         .temporary = 100 + i});
  }
  return out;
}

std::unique_ptr<Policy> plugin(const std::string& options) {
  // The virtual node keeps devices to their depths.
  auto out = policy_of(PLUGIN_FILE + options, "ahead-us=0");
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return std::move(out).value();
}

TEST(Plugin, ChoosesInItsOwnOrder) {
  const auto policy = plugin("");
  EXPECT_EQ(policy->name(), "shortest-first+lru+fair");
  VirtualNode node({virtual_device(DeviceClass::kCpu, 1, 1, 1, 1000)}, *policy);
  const Workload work = hundred();
  const Outcome outcome = node.run(work);
  ASSERT_EQ(outcome.violation, "");
  EXPECT_TRUE(std::is_sorted(
      outcome.grant_order.begin(), outcome.grant_order.end(),
      [&](std::uint32_t a, std::uint32_t b) { return work.tasks[a].work < work.tasks[b].work; }));
  EXPECT_EQ(policy->complaint(), "");
}

TEST(Plugin, ThatBreaksTheRulesIsDismissedAndNoTaskIsLost) {
  for (const std::string options : {":broken", ":idle"}) {
    const auto policy = plugin(options);
    VirtualNode node({virtual_device(DeviceClass::kCpu, 1, 1, 1, 1000),
                      virtual_device(DeviceClass::kGpu, 2, 4, 4, 1000)},
                     *policy);
    ASSERT_EQ(node.run(hundred()).violation, "") << options;
    EXPECT_NE(policy->complaint(), "");
  }
}

TEST(Plugin, ThatIsNoneIsRefusedWithASentence) {
  const auto none = policy_of("./no_such_policy.so", "");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message.find("cannot load the policy './no_such_policy.so': "), 0U);
  const auto option = policy_of(std::string(PLUGIN_FILE) + ":quick", "");
  ASSERT_FALSE(option.ok());
  EXPECT_EQ(option.error().message,
            std::string("cannot use the policy '") + PLUGIN_FILE +
                "': its init failed: 'quick' is not an option; it takes none");
}

}  // namespace
}  // namespace amasia::devices::policy
