// SPDX-License-Identifier: Apache-2.0
#include "tools/machine_command.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tools/hwloc_topology.hpp"

namespace amasia::tools {
namespace {

Result<MachineArguments> take(std::vector<const char*> words) {
  return take_machine_arguments(words);
}

TEST(MachineCommand, TakesAFileAndAPicture) {
  const auto both = take({"a.json", "--draw", "b.svg"});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both.value().file, "a.json");
  EXPECT_EQ(both.value().drawing, "b.svg");
  EXPECT_EQ(take({"--draw=c.svg"}).value().drawing, "c.svg");
  EXPECT_TRUE(take({}).value().file.empty());
  EXPECT_EQ(take({"a", "b"}).error().message,
            "'b' is not allowed: machine takes a platform file, if any, and --draw PICTURE.svg");
  EXPECT_FALSE(take({"--paint"}).ok());
  EXPECT_FALSE(take({"--draw"}).ok());
  EXPECT_EQ(take({"--draw="}).error().message, "--draw takes the name of a file for the picture");
}

TEST(MachineCommand, ThisMachineHasCoresAndMemory) {
  const auto topology = local_topology();
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_GE(topology.value().cores, 1u);
  EXPECT_GT(topology.value().memory_bytes, 0u);
  EXPECT_EQ(machine::flaw_of(machine::platform_of(topology.value())), "");
}

}  // namespace
}  // namespace amasia::tools
