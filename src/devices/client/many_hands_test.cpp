// SPDX-License-Identifier: Apache-2.0
// Which threads of the client submit what was granted: the test plays the daemon.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "devices/client/test_backend.hpp"
#include "devices/client/test_daemon.hpp"

namespace amasia::devices {
namespace {

// One device, to which a thread that submits stays until another one does so too, or for a while.
class Meeting final : public TestBackend {
 public:
  Meeting() : TestBackend(1, 16) {}
  bool takes_copies_from_many(LocalDevice) const override { return true; }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes, void*, Outcome*) override {
    return std::make_unique<DeviceBuffer>();
  }
  void submit(const Work& work, Completion& completion) override {
    if (lasts != 0) {
      const int now = inside.fetch_add(1) + 1;
      int most_before = most.load();
      while (most_before < now && !most.compare_exchange_weak(most_before, now)) {
      }
      std::this_thread::sleep_for(std::chrono::nanoseconds(lasts));
      inside.fetch_sub(1);
    }
    if (!work.to_device.empty() && waits) {
      inside.fetch_add(1);
      const Nanos deadline = os::monotonic_now() + kTestPatience;
      while (inside.load() < 2 && !met.load() && os::monotonic_now() < deadline) os::yield_core();
      met.store(met.load() || inside.load() >= 2);
      inside.fetch_sub(1);
    }
    completion.finished(Outcome{});
  }

  bool waits = false;
  Nanos lasts = 0;  // so long takes each
  std::atomic<int> inside{0}, most{0};
  std::atomic<bool> met{false};
};

// Six of them, which run kernels in who submits. A kernel ends when one of each runs, or after a
// while.
class Callers final : public TestBackend {
 public:
  static constexpr int kDevices = 6;
  Callers() : TestBackend(kDevices, 4) {}
  bool runs_in_caller(LocalDevice) const override { return true; }
  void submit(const Work&, Completion& completion) override {
    inside.fetch_add(1);
    const Nanos deadline = os::monotonic_now() + kTestPatience;
    while (inside.load() < kDevices && os::monotonic_now() < deadline) os::yield_core();
    completion.finished(Outcome{});
  }
  std::atomic<int> inside{0};
};

class Hands : public PlayedDaemon {
 protected:
  void start(std::unique_ptr<Backend> backend, unsigned workers) {
    start_client(std::move(backend), 1, workers);
    ProgramCode code;
    code.kind = ProgramKind::kHostFunction;
    const Fault wrong = client_->programs().add(code, "kernel");
    ASSERT_FALSE(wrong) << wrong.reason;
  }
  std::shared_ptr<Task> submit(std::uint8_t device = 0) {
    auto task = std::make_shared<Task>(client_.get());
    task->kernel = "kernel";
    Argument& argument = task->arguments.emplace_back();
    argument.set = true;
    argument.flags = MCL_ARG_BUFFER | MCL_ARG_INPUT;
    argument.address = bytes_.data();
    argument.size = bytes_.size();
    const Fault wrong = client_->submit(task, {});
    EXPECT_FALSE(wrong) << wrong.reason;
    Record record;
    do {
      EXPECT_EQ(daemon_.from_client->pop(&record), RingState::kOk);
    } while (record.kind() != RecordKind::kPut && !HasFailure());
    EXPECT_EQ(daemon_.to_client->push(
                  short_record(RecordKind::kGrant, record.as<PutRecord>().task, device)),
              RingState::kOk);
    return task;
  }
  void publish() {
    if (daemon_.to_client->publish()) daemon_.wakes_client.raise();
  }

  std::array<char, 64> bytes_{};
};

class ManyHands : public Hands {
 protected:
  void SetUp() override {
    Hands::SetUp();
    auto backend = std::make_unique<Meeting>();
    backend_ = backend.get();
    start(std::move(backend), 8);
  }
  Meeting* backend_ = nullptr;
};

TEST_F(ManyHands, CopiesToADeviceThatLikesItComeFromSeveralThreads) {
  const auto first = submit();  // its kernel is known from here on
  publish();
  ASSERT_TRUE(client_->wait(*first, os::monotonic_now() + kTestPatience));
  backend_->waits = true;
  std::vector<std::shared_ptr<Task>> all;
  for (int i = 0; i < 12; ++i) all.push_back(submit());
  publish();
  for (const auto& task : all) {
    EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + 2 * kTestPatience));
  }
  EXPECT_TRUE(backend_->met.load());
}

// The thread that waits, and two workers of eight: more of them hold each other up in the driver.
TEST_F(ManyHands, NotFromMoreThanAFew) {
  const auto first = submit();
  publish();
  ASSERT_TRUE(client_->wait(*first, os::monotonic_now() + kTestPatience));
  backend_->lasts = base::kMillisecond;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::shared_ptr<Task>> all;
    for (int i = 0; i < 40; ++i) all.push_back(submit());
    publish();
    for (const auto& task : all) {
      EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + kTestPatience));
    }
  }
  EXPECT_GE(backend_->most.load(), 2);
  EXPECT_LE(backend_->most.load(), 4) << "with the service thread";
}

TEST_F(Hands, DevicesThatRunKernelsInWhoSubmitsAllRunAtOnce) {
  auto backend = std::make_unique<Callers>();
  Callers& callers = *backend;
  start(std::move(backend), 1);
  std::vector<std::shared_ptr<Task>> all;
  const Nanos began = os::monotonic_now();
  for (std::uint8_t i = 0; i < Callers::kDevices; ++i) all.push_back(submit(i));
  publish();
  for (const auto& task : all) {
    EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + 2 * kTestPatience));
  }
  EXPECT_EQ(callers.inside.load(), Callers::kDevices);
  EXPECT_LT(os::monotonic_now() - began, kTestPatience) << "one waited for another's end";
}

}  // namespace
}  // namespace amasia::devices
