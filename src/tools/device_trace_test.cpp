// SPDX-License-Identifier: Apache-2.0
// From tasks to a trace to its report, and what daemons may answer.
#include "tools/device_trace.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "devices/devices.hpp"
#include "tools/node_devices.hpp"

namespace amasia::tools {
namespace {

using devices::ClientId;
using devices::DeviceId;

// Two devices; tasks of 1000 us each that take half of a device, two at once on the first.
std::string some_trace() {
  devices::TraceText trace(1'000'000);
  std::string out = trace.begin();
  for (std::uint16_t i = 0; i < 2; ++i) {
    devices::DeviceDescription about;
    about.name = i == 0 ? "the \"first\" <gpu>" : "cpu";
    about.queue_depth = 2;
    out += trace.device(DeviceId(i), about);
  }
  out += trace.client(ClientId(7), 4711, "gemm");
  for (std::uint64_t i = 0; i < 4; ++i) {
    devices::TraceTask task;
    task.task = {ClientId(7), i + 1};
    task.device = DeviceId(i == 3 ? 1 : 0);
    task.share = 0.5;
    task.put_at = 1'000'000;
    task.granted_at = 2'000'000 + static_cast<Nanos>(i / 2) * 1'000'000;
    task.copy_began = task.granted_at + 100'000;
    task.run_began = task.granted_at + 200'000;
    task.run_ended = task.granted_at + 900'000;
    task.copy_ended = task.finished_at = task.granted_at + 1'000'000;
    task.copied = 1000;
    task.kernel = i + 1;
    task.kernel_name = i == 0 ? "run" : i == 1 ? "copy in" : i == 2 ? "queued" : "";
    task.succeeded = i != 3;
    out += trace.task(task);
  }
  return out + trace.end();
}

TEST(DeviceTrace, IsReadAsWritten) {
  const auto trace = parse_device_trace(some_trace());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().devices.at(0).name, "device 0: the \"first\" <gpu>");
  EXPECT_EQ(trace.value().clients.at(7), "gemm (4711)");
  ASSERT_EQ(trace.value().tasks.size(), 4U);
  const TracedTask& last = trace.value().tasks[3];
  EXPECT_EQ(last.device, 1U);
  EXPECT_FALSE(last.succeeded);
  EXPECT_DOUBLE_EQ(last.granted_us, 2000);
  EXPECT_DOUBLE_EQ(last.queued_us, 2000);
  EXPECT_DOUBLE_EQ(last.run_us, 700);
  EXPECT_DOUBLE_EQ(last.copy_us, 200);
  EXPECT_EQ(last.bytes, 1000U);
}

// What chrome://tracing needs: slices of one lane lie apart or inside each other.
TEST(DeviceTrace, SlicesOfALaneNest) {
  const auto json = nlohmann::json::parse(some_trace());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> lanes;
  for (const auto& event : json) {
    EXPECT_FALSE(event.value("name", "").empty()) << event;
    if (event.value("ph", "") != "X") continue;
    lanes[{event["pid"].get<int>(), event["tid"].get<int>()}].emplace_back(
        event["ts"].get<double>(), event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(lanes.size(), 2U + 1 + 4) << "two at once on device 0; four queued at once";
  for (const auto& [lane, slices] : lanes) {
    for (const auto& a : slices) {
      for (const auto& b : slices) {
        const bool apart = a.second <= b.first || b.second <= a.first;
        const bool inside = (a.first >= b.first && a.second <= b.second) ||
                            (b.first >= a.first && b.second <= a.second);
        EXPECT_TRUE(apart || inside) << lane.first << "/" << lane.second;
      }
    }
  }
}

TEST(DeviceTrace, OfADaemonThatWasKilledIsReadUpToItsEnd) {
  const std::string whole = some_trace();
  std::size_t most = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto trace = parse_device_trace(std::string_view(whole).substr(0, length));
    const std::size_t tasks = trace.ok() ? trace.value().tasks.size() : 0;
    EXPECT_GE(tasks, most) << "cut at " << length;
    most = std::max(most, tasks);
  }
  EXPECT_EQ(most, 4U);
  // Without the bracket that ends it nothing of the last task is lost.
  const auto trace = parse_device_trace(std::string_view(whole).substr(0, whole.size() - 3));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_DOUBLE_EQ(trace.value().tasks[3].copy_us, 200);
}

TEST(DeviceTrace, WhatIsNoneIsRefused) {
  for (const auto& [text, why] : std::map<std::string, std::string>{
           {"{]", "it is not JSON"},
           {"{\"a\":1}", "it is not a trace: neither a list nor 'traceEvents'"},
           {"[{\"ph\":\"X\"},3]", "it is a trace, but has no device of amasia-deviced"}}) {
    const auto trace = parse_device_trace(text);
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_EQ(trace.error().message, why);
  }
}

TEST(DeviceTrace, UtilisationHasAPointForEachGrantAndEnd) {
  const auto trace = parse_device_trace(some_trace());
  ASSERT_TRUE(trace.ok());
  std::vector<double> first, second;
  for (const UtilisationPoint& point : utilisation(trace.value())) {
    first.push_back(point.of_device[0]);
    second.push_back(point.of_device[1]);
  }
  // Two granted; at 2000 us both end, and one is granted on each device; both end.
  EXPECT_EQ(first, (std::vector<double>{0.5, 1, 0.5, 0, 0.5, 0.5, 0, 0}));
  EXPECT_EQ(second, (std::vector<double>{0, 0, 0, 0, 0, 0.5, 0.5, 0}));
}

// One task at a time is half of the events busy, however many events share a point.
TEST(DeviceTrace, APictureOfManyEventsShowsTheirMeans) {
  devices::TraceText text(0);
  std::string written = text.begin() + text.device(DeviceId(0), {});
  for (std::uint64_t i = 0; i < 4500; ++i) {
    devices::TraceTask task;
    task.task = {ClientId(1), i + 1};
    task.put_at = task.granted_at = static_cast<Nanos>(2000 * i + 1000);
    task.finished_at = task.granted_at + 1000;
    written += text.task(task);
  }
  const auto trace = parse_device_trace(written + text.end());
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(utilisation(trace.value()).size(), 9000U);
  const std::string script = utilisation_script(trace.value(), "x.png");
  std::istringstream lines(script.substr(script.find("EOD\n") + 4));
  std::string line;
  std::size_t points = 0;
  ASSERT_TRUE(std::getline(lines, line) && line == "0 0") << line;
  double sum = 0;
  while (std::getline(lines, line) && line != "EOD") {
    ++points;
    const double value = std::stod(line.substr(line.find(' ')));
    EXPECT_GE(value, 33) << line;
    EXPECT_LE(value, 67) << line;
    sum += value;
  }
  EXPECT_EQ(points, 3000U);
  EXPECT_NEAR(sum / static_cast<double>(points), 50, 0.01);
}

TEST(DeviceTrace, ReportNamesWhatItCounts) {
  const auto trace = parse_device_trace(some_trace());
  ASSERT_TRUE(trace.ok());
  const std::string text = device_report_text(trace.value());
  EXPECT_EQ(text.substr(0, text.find('\n')), "4 tasks of 1 client on 2 devices in 3.0 ms");
  EXPECT_NE(text.find("75.0 %"), std::string::npos) << "of device 0: " << text;
  const std::string html = device_report_html(trace.value(), "\x89PNG", "a & b");
  EXPECT_NE(html.find("data:image/png;base64,iVBORw=="), std::string::npos);
  EXPECT_NE(html.find("the &quot;first&quot; &lt;gpu&gt;"), std::string::npos);
  EXPECT_NE(html.find("<h1>a &amp; b</h1>"), std::string::npos);
}

constexpr const char* kAnswer =
    R"({"version":1,"process":5,"policy":"fifo+two-level+lru+fair","now_ns":2000000000,)"
    R"("draining":false,"devices":[{"device":0,"identity":"host","name":"host","class":"CPU",)"
    R"("compute_units":2,"memory":1048576,"queue_depth":4,"running":1,"finished":10,)"
    R"("resident":2048,"busy_ns":1500000000}],)"
    R"("clients":[{"client":1,"process":77,"program":"a\nb","queued":3,"running":1,"finished":9,)"
    R"("failed":1,"resident":2048,"stopped":true,"devices":[0]},)"
    R"({"client":2,"process":78,"program":"amasia",)"
    R"("devices":[]}]})";

TEST(NodeDevices, TopShowsUtilisationBetweenTwoAnswers) {
  const auto now = parse_node_devices(kAnswer);
  ASSERT_TRUE(now.ok()) << now.error().message;
  NodeDevices before = now.value();
  before.now = 1'000'000'000;
  before.devices[0].busy = 1'000'000'000;
  const std::string text = top_text(now.value(), &before);
  EXPECT_NE(text.find("##########..........   50 %"), std::string::npos) << text;
  EXPECT_NE(text.find("a?b (stopped)"), std::string::npos) << text;
  EXPECT_EQ(now.value().clients.size(), 1U) << "who looks on is no client";
  EXPECT_EQ(top_text(now.value(), nullptr).find('#'), std::string::npos);
}

TEST(NodeDevices, WhatIsSeenAndWhatTheDaemonKnowsIsOneList) {
  const auto daemon = parse_node_devices(kAnswer);
  ASSERT_TRUE(daemon.ok());
  devices::DeviceDescription host, gpu;
  host.identity = "host";
  gpu.identity = "gpu";
  gpu.backend = "cuda, opencl";
  const auto all = merged({host, gpu}, &daemon.value());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].running, 1U);
  EXPECT_FALSE(all[1].known_to_daemon);
  EXPECT_NE(devices_text(all, nullptr).find("no daemon runs"), std::string::npos);
  EXPECT_NE(devices_text(all, nullptr).find(" cuda, opencl "), std::string::npos) << "in whole";
}

TEST(NodeDevices, WhatIsNoAnswerIsRefused) {
  EXPECT_EQ(parse_node_devices("[]").error().message, "the daemon's answer is not a JSON object");
  EXPECT_EQ(parse_node_devices("{\"devices\":[]}").error().message,
            "the daemon's answer has no list 'clients'");
  EXPECT_EQ(parse_node_devices("{\"devices\":[3]}").error().message,
            "the daemon's answer has in 'devices' what is no object");
}

}  // namespace
}  // namespace amasia::tools
