// SPDX-License-Identifier: Apache-2.0
// A daemon with our own policy and a trace: what an observer is told, and what the file says.
#include "devices/daemon/trace_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "devices/client/link.hpp"
#include "devices/client/observe.hpp"
#include "devices/daemon/test_stop.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {
namespace {

std::string content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}
std::size_t count(const std::string& text, const std::string& what) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++out;
  return out;
}

class TraceFileTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(std::filesystem::create_directory(folder_ / "run")); }
  const tests::TemporaryFolder folder_{"trace"};
};

// One task at a time through a daemon: put, granted, ended.
void run_tasks(Link& link, std::uint64_t tasks) {
  const auto interrupt = std::move(os::Wakeup::make()).value();
  for (std::uint64_t task = 1; task <= tasks; ++task) {
    PutRecord put;
    put.task = task;
    put.allowed = 1;
    put.work_items = 2;
    put.kernel = 5 + task % 3;  // the last of which has no name
    const Record record = Record::of(put);
    ASSERT_TRUE(link.send({&record, 1}));
    Record answer;
    while (link.receive(&answer) != RingState::kOk) {
      if (link.may_sleep()) link.wait(interrupt);
    }
    ASSERT_EQ(answer.as<ShortRecord>().kind, RecordKind::kGrant);
    FinishedRecord finished;
    finished.task = task;
    finished.run_began = os::monotonic_now();
    finished.run_ended = finished.run_began + 1;
    finished.copied = 5;
    const Record end = Record::of(finished);
    ASSERT_TRUE(link.send({&end, 1}));
  }
}

TEST_F(TraceFileTest, HoldsEveryTaskOfARun) {
  const std::string path = folder_ / "trace.json";
  {
    auto trace = TraceFile::open(path, 0);
    ASSERT_TRUE(trace.ok());
    TaskEnded run;
    run.task = {ClientId(3), 5};
    run.count = 4;
    run.failed = 1;
    run.put_at = 1000;
    run.granted_at = 2000;
    run.run_began = 4000;
    run.run_ended = 12'000;
    run.finished_at = 15'000;
    DeviceDescription device;
    device.identity = "host";
    trace.value()->ended(run, device);
  }
  const std::string text = content(path);
  EXPECT_EQ(count(text, R"("name":"run")"), 4U) << text;
  EXPECT_EQ(count(text, R"("name":"queued")"), 4U);
  EXPECT_EQ(count(text, R"("succeeded":false)"), 1U);
  for (const char* const began : {"4.000", "6.000", "8.000", "10.000"}) {
    EXPECT_NE(text.find(fmt::format(R"("name":"run","ph":"X","ts":{},"dur":2.000)", began)),
              std::string::npos)
        << text;
  }
}

TEST_F(TraceFileTest, HoldsEveryTaskAndAnObserverSeesTheSame) {
  const std::string path = folder_ / "trace.json", socket = folder_ / "run/devices.sock";
  auto trace = TraceFile::open(path, os::monotonic_now());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(content(path), "[") << "a trace from the first moment on";
  auto listening = os::listen_at_path(socket, 0600);
  ASSERT_TRUE(listening.ok()) << listening.error().message;
  ServerSettings settings;
  settings.own_path = socket;
  Stop stop;
  Server server(settings, std::move(listening).value(),
                std::move(make_policy("earliest-finish", "")).value(), trace.value().get());
  std::thread thread([&] { EXPECT_TRUE(server.run(stop).ok()); });
  LinkSettings link_settings;
  link_settings.connect.path = socket;
  link_settings.connect.start_daemon = false;
  link_settings.program = "a \"program\" \xe9";
  DeviceDescription device;
  device.identity = "host";
  device.name = "host";
  device.compute_units = 4;
  auto link = Link::open(link_settings, {device});
  ASSERT_TRUE(link.ok()) << link.error().message;
  for (const auto& [kernel, name] : {std::pair{5, "gemm"}, {6, "caf\xe9"}}) {
    NameKernelRecord named;
    named.kernel = static_cast<std::uint64_t>(kernel);
    set_text(named.name, name);
    const Record record = Record::of(named);
    ASSERT_TRUE(link.value()->send({&record, 1}));
  }
  run_tasks(*link.value(), 20);

  const auto observer = Observer::open(socket);
  ASSERT_TRUE(observer.ok()) << observer.error().message;
  // The last end and the question travel apart: asked until it has arrived.
  std::string said;
  while (said.find("\"finished\":20") == std::string::npos) {
    const auto answer = observer.value()->snapshot();
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    said = answer.value();
  }
  EXPECT_NE(said.find("earliest-finish"), std::string::npos) << said;
  stop.raise();
  thread.join();
  EXPECT_FALSE(observer.value()->snapshot().ok()) << "the daemon has gone";
  trace.value().reset();

  const std::string text = content(path);
  EXPECT_EQ(count(text, "\"name\":\"queued\""), 20U) << text;
  EXPECT_EQ(count(text, "\"name\":\"run\""), 20U);
  EXPECT_EQ(count(text, "\"share\":0.5000"), 20U) << "two work items of four elements";
  EXPECT_EQ(count(text, "device 0: host"), 1U);
  EXPECT_EQ(count(text, "a \\\"program\\\" \\ufffd"), 1U);
  EXPECT_EQ(count(text, "\"name\":\"gemm\""), 6U);
  EXPECT_EQ(count(text, "\"name\":\"caf\\ufffd\""), 7U) << "what is no UTF-8 is no JSON either";
  EXPECT_EQ(count(text, "\"name\":\"kernel 0000000000000007\""), 7U);
  EXPECT_EQ(text.substr(text.size() - 4), "}\n]\n");
  EXPECT_EQ(count(text, "{}"), 0U) << "no event without content";
}

TEST_F(TraceFileTest, ThatCannotBeWrittenIsRefusedWithASentence) {
  const std::string path = folder_ / "no/trace.json";
  const auto trace = TraceFile::open(path, 0);
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().message,
            "cannot write the trace '" + path + "': No such file or directory");
  const auto observer = Observer::open(folder_ / "run/nothing.sock");
  ASSERT_FALSE(observer.ok());
  EXPECT_TRUE(observer.error().code == ENOENT || observer.error().code == ECONNREFUSED)
      << observer.error().message;
}

}  // namespace
}  // namespace amasia::devices
