// SPDX-License-Identifier: Apache-2.0
// A GPU that two back ends show, as a client and a daemon see it: two drivers that are made up,
// with memories of their own, and a real server on a thread.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "devices/backends/same_device.hpp"
#include "devices/client/client.hpp"
#include "devices/client/observe.hpp"
#include "devices/daemon/server.hpp"
#include "devices/daemon/test_stop.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {
namespace {

struct FakeBuffer final : DeviceBuffer {
  explicit FakeBuffer(Bytes size) : bytes(size) {}
  std::vector<std::byte> bytes;
};
struct FakeKernel final : LoadedKernel {};

// Takes one kind of program, in which every kernel adds 1 to the ints of its buffers.
class FakeDriver final : public Backend {
 public:
  FakeDriver(std::string name, ProgramKind kind) : name_(std::move(name)), kind_(kind) {
    DeviceDescription gpu;
    gpu.identity = name_ + "/gpu";
    gpu.pci = "0000:65:00.0";
    gpu.backend = name_;
    gpu.device_class = DeviceClass::kGpu;
    gpu.memory = gpu.max_allocation = base::kMiB;
    devices_.push_back(gpu);
    identify_by_address(devices_);
  }
  std::string_view name() const override { return name_; }
  const std::vector<DeviceDescription>& devices() const override { return devices_; }
  ProgramKinds takes(LocalDevice) const override { return set_of(kind_); }
  std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode& code, const std::string&,
                                     std::size_t, Outcome*) override {
    EXPECT_EQ(code.kind, kind_);
    return std::make_unique<FakeKernel>();
  }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes size, void*, Outcome*) override {
    return std::make_unique<FakeBuffer>(size);
  }
  void submit(const Work& work, Completion& completion) override {
    const auto at = [](const Copy& copy) {
      return static_cast<FakeBuffer&>(*copy.buffer).bytes.data() + copy.offset;
    };
    for (const Copy& copy : work.to_device) std::memcpy(at(copy), copy.host, copy.size);
    for (const KernelArgument& argument : work.arguments) {
      auto& bytes = static_cast<FakeBuffer&>(*argument.buffer).bytes;
      for (std::size_t i = 0; work.kernel != nullptr && i < bytes.size(); i += sizeof(int)) {
        int value = 0;
        std::memcpy(&value, &bytes[i], sizeof value);
        ++value;
        std::memcpy(&bytes[i], &value, sizeof value);
      }
    }
    for (const Copy& copy : work.to_host) std::memcpy(copy.host, at(copy), copy.size);
    completion.finished(Outcome{});
  }

 private:
  const std::string name_;
  const ProgramKind kind_;
  std::vector<DeviceDescription> devices_;
};

class TwoWays : public testing::Test {
 protected:
  void SetUp() override {
    ServerSettings settings;
    settings.own_path = path_;
    auto listening = os::listen_at_path(path_, 0600);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    auto policy = make_policy("", "");
    ASSERT_TRUE(policy.ok()) << policy.error().message;
    server_ = std::make_unique<Server>(settings, std::move(listening).value(),
                                       std::move(policy).value(), nullptr);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(stop_).ok()); });
    ClientSettings own;
    own.link.connect.path = path_;
    own.link.connect.start_daemon = false;
    Backends backends;
    backends.all.push_back(std::make_unique<FakeDriver>("first", ProgramKind::kCudaSource));
    backends.all.push_back(std::make_unique<FakeDriver>("second", ProgramKind::kSource));
    auto client = Client::start(own, std::move(backends));
    ASSERT_TRUE(client.ok()) << client.error().message;
    client_ = std::move(client).value();
  }
  void TearDown() override {
    client_.reset();
    stop_.raise();
    thread_.join();
    EXPECT_FALSE(std::filesystem::exists(folder_.path()));
  }
  void load(ProgramKind kind) {
    ProgramCode code;
    code.kind = kind;
    code.code = "kind " + std::to_string(static_cast<int>(kind));
    const Fault wrong = client_->programs().add(code, "");
    EXPECT_FALSE(wrong) << wrong.reason;
  }
  // Runs the kernel on the memory, whose copy stays; `output` brings it back.
  std::shared_ptr<Task> run(const std::string& kernel, std::vector<int>& memory, bool output) {
    auto task = std::make_shared<Task>(client_.get());
    task->kernel = kernel;
    Argument argument;
    argument.set = true;
    argument.flags = MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_INPUT | MCL_ARG_DYNAMIC |
                     (output ? MCL_ARG_OUTPUT : 0);
    argument.address = memory.data();
    argument.size = memory.size() * sizeof(int);
    Fault wrong = client_->bind(argument);
    task->arguments.push_back(std::move(argument));
    if (!wrong) wrong = client_->submit(task, {});
    EXPECT_FALSE(wrong) << wrong.reason;
    EXPECT_TRUE(client_->wait(*task, INT64_MAX));
    EXPECT_FALSE(task->failure) << task->failure.reason;
    return task;
  }
  // What the daemon says of it, once all that the client has told is known there.
  bool daemon_says(const std::string& text) {
    auto observer = Observer::open(path_);
    EXPECT_TRUE(observer.ok());
    for (int i = 0; i < 10000; ++i) {
      const auto now = observer.value()->snapshot();
      last_ = now.ok() ? now.value() : now.error().message;
      if (last_.find(text) != std::string::npos) return true;
      os::wait_readable(nullptr, 0, base::kMillisecond);
    }
    return false;
  }

  const tests::TemporaryFolder folder_{"two-ways"};
  const std::string path_ = folder_ / "devices.sock";
  std::string last_;
  Stop stop_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::unique_ptr<Client> client_;
};

TEST_F(TwoWays, OneDeviceRunsTheProgramsOfBothBackEnds) {
  EXPECT_EQ(client_->device_count(), 1U);
  load(ProgramKind::kSource);
  std::vector<int> memory(16, 1), other(16, 5);
  const auto second = run("add", memory, false);
  EXPECT_EQ(second->device, 1) << "only the second back end takes it";
  EXPECT_EQ(client_->number_of(*second), 0);
  load(ProgramKind::kCudaSource);
  const auto first = run("add", memory, false);
  EXPECT_EQ(first->device, 0) << "the first back end, now that it can";
  EXPECT_EQ(client_->number_of(*first), 0);
  run("add", other, true);
  EXPECT_EQ(other, std::vector<int>(16, 6));
  EXPECT_TRUE(daemon_says("\"identity\":\"pci/0000:65:00.0\"")) << last_;
  EXPECT_EQ(last_.find("\"device\":1"), std::string::npos) << last_;
  // Two buffers of 64 bytes, however many of the back ends have copies of them.
  EXPECT_TRUE(daemon_says("\"finished\":3,\"resident\":128")) << last_;
}

TEST_F(TwoWays, BytesGoFromOneBackEndToTheOtherAndAreDroppedOnce) {
  load(ProgramKind::kSource);
  std::vector<int> memory(16, 1);
  run("add", memory, false);
  load(ProgramKind::kCudaSource);
  run("add", memory, true);
  EXPECT_EQ(memory, std::vector<int>(16, 3)) << "both have added";
  EXPECT_TRUE(daemon_says("\"resident\":64")) << last_;
  const Fault wrong = client_->unregister_buffer(memory.data());
  EXPECT_FALSE(wrong) << wrong.reason;
  EXPECT_TRUE(daemon_says("\"finished\":2,\"resident\":0")) << last_;
}

TEST_F(TwoWays, PartsOfOneBufferNeedOneCopyOfIt) {
  load(ProgramKind::kSource);
  std::vector<int> memory(700 * base::kKiB / sizeof(int));  // the device has 1 MiB
  const Bytes half = memory.size() * sizeof(int) / 2;
  Fault wrong = client_->register_buffer(memory.data(), 2 * half);
  EXPECT_FALSE(wrong) << wrong.reason;
  auto task = std::make_shared<Task>(client_.get());
  task->kernel = "add";
  for (const Bytes offset : {Bytes{0}, half}) {
    Argument argument;
    argument.set = true;
    argument.flags = MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_INPUT | MCL_ARG_DYNAMIC;
    argument.address = memory.data();
    argument.size = half;
    argument.offset = offset;
    wrong = client_->bind(argument);
    EXPECT_FALSE(wrong) << wrong.reason;
    task->arguments.push_back(std::move(argument));
  }
  wrong = client_->submit(task, {});
  ASSERT_FALSE(wrong) << wrong.reason;
  EXPECT_TRUE(client_->wait(*task, INT64_MAX));
  EXPECT_FALSE(task->failure) << task->failure.reason;
  EXPECT_TRUE(daemon_says("\"finished\":1,\"resident\":716800")) << last_;
}

}  // namespace
}  // namespace amasia::devices
