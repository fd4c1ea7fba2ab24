// SPDX-License-Identifier: Apache-2.0
#include "devices/trace/trace.hpp"

#include <gtest/gtest.h>

namespace amasia::devices {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(TraceText, HasTheRunOfATaskThatTookNoTime) {
  TraceText trace(0);
  TraceTask task{.task = {ClientId{1}, 7}, .device = DeviceId{0}, .kernel_name = {}};
  task.put_at = 1000, task.granted_at = 2000, task.run_began = 3000, task.run_ended = 3000;
  task.finished_at = 3000;
  const std::string text = trace.task(task);
  EXPECT_TRUE(has(text, R"("name":"run","ph":"X","ts":3.000,"dur":0.000)")) << text;
  EXPECT_FALSE(has(text, "copy in") || has(text, "copy out")) << text;
}

TEST(TraceText, LeavesOutWhatIsNotKnown) {
  TraceText trace(0);
  TraceTask task{.task = {ClientId{1}, 7}, .device = DeviceId{0}, .kernel_name = {}};
  task.put_at = 1000, task.granted_at = 2000, task.finished_at = 3000;
  const std::string text = trace.task(task);
  EXPECT_TRUE(has(text, R"("name":"queued")")) << text;
  EXPECT_FALSE(has(text, R"("name":"run")")) << text;
}

}  // namespace
}  // namespace amasia::devices
