// SPDX-License-Identifier: Apache-2.0
// Brief tasks on a device that the daemon has leased: they run at once, and are told of afterwards.
#include <gtest/gtest.h>

#include "devices/client/observe.hpp"
#include "devices/client/test_held.hpp"
#include "devices/client/test_server.hpp"

namespace amasia::devices {
namespace {

class Leases : public HeldTasks {
 protected:
  void begin_leased(std::size_t devices = 1, DeviceClass device_class = DeviceClass::kGpu) {
    begin(devices, 4, 64, true, device_class);
  }
  // Submits one and ends it.
  std::shared_ptr<Task> run_one() {
    auto task = submit();
    EXPECT_TRUE(backend_->has(1)) << "it is with the device when it has been submitted";
    EXPECT_TRUE(backend_->end(false));
    EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + kTestPatience));
    return task;
  }
};

TEST_F(Leases, ATaskThatIsAloneRunsAtOnceAndIsToldOf) {
  begin_leased();
  fall_asleep();
  const auto task = run_one();
  EXPECT_TRUE(sleeps()) << "the daemon is not woken for it";
  EXPECT_EQ(next_put(), 0U);
  ASSERT_EQ(ran_.size(), 1U);
  EXPECT_EQ(ran_[0].task, task->number);
  EXPECT_EQ(ran_[0].device, 0);
  EXPECT_EQ(ran_[0].failure, 0);
  EXPECT_EQ(ran_[0].run_ended - ran_[0].run_began, 300);
  EXPECT_LE(ran_[0].sent, ran_[0].run_began);
  EXPECT_EQ(told_ends_, 1) << "only that of the first one, which was put";
}

TEST_F(Leases, WhatComesBesideItIsPut) {
  begin_leased();
  const auto first = submit();
  ASSERT_TRUE(backend_->has(1));
  const auto second = submit();
  const std::uint64_t number = next_put();
  EXPECT_EQ(number, second->number);
  // And what depends on it when it has ended.
  const auto third = submit({first});
  ASSERT_TRUE(backend_->end(false));
  EXPECT_TRUE(comes([&] { return next_put() == third->number; }));
  grant(number, 0);
  ASSERT_TRUE(ends_one());
}

TEST_F(Leases, NothingRunsSoOnceTheyAreRevoked) {
  begin_leased();
  run_one();
  say(short_record(RecordKind::kRevoke, 0));
  // The service thread reads it; until then it may be as before.
  EXPECT_TRUE(comes([&] {
    const auto task = submit();
    if (const std::uint64_t number = next_put(); number != 0) {
      grant(number, 0);
      EXPECT_TRUE(ends_one());
      return true;
    }
    EXPECT_TRUE(backend_->end(false));
    EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + kTestPatience));
    return false;
  }));
  submit();
  grant(next_put(), 0, true);
  ASSERT_TRUE(ends_one());
  run_one();
}

TEST_F(Leases, NotWhereTheDaemonDrainsOrHasEnded) {
  begin_leased();
  say(short_record(RecordKind::kDraining, 0));
  EXPECT_TRUE(comes([&] {
    const auto task = submit();
    if (!backend_->has(1)) return true;
    EXPECT_TRUE(backend_->end(false));
    EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + kTestPatience));
    return false;
  })) << "it waits for the next daemon";
}

TEST_F(Leases, NotWhereThereIsAChoiceOfDevices) {
  begin_leased(2);
  submit();
  EXPECT_NE(next_put(), 0U);
}

// Some are put, to see which way is quicker; here the one to the daemon takes longer.
TEST_F(Leases, OfACpuBothWaysAreTried) {
  begin_leased(1, DeviceClass::kCpu);
  const auto put_one = [&] {
    const auto task = submit();
    const std::uint64_t number = next_put();
    EXPECT_EQ(number, task->number);
    if (number == 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    grant(number, 0);
    return ends_one() && client_->wait(*task, os::monotonic_now() + kTestPatience);
  };
  for (std::size_t i = 0; i < LeaseHabit::kTried; ++i) run_one();
  for (std::size_t i = 0; i < LeaseHabit::kTried; ++i) ASSERT_TRUE(put_one()) << i;
  for (std::size_t i = 0; i < 2 * LeaseHabit::kTried; ++i) run_one();
  EXPECT_EQ(next_put(), 0U);
}

// It takes twice as long each time. Up to 256 us it is not worth asking.
TEST_F(Leases, NotOfAKernelThatIsLong) {
  begin_leased();
  Nanos took = 300;
  for (; took <= 256 * base::kMicrosecond; took *= 2) {
    const auto task = submit();
    ASSERT_TRUE(backend_->has(1)) << "after one of " << took << " ns";
    ASSERT_TRUE(backend_->end(false, 2 * took));
    ASSERT_TRUE(client_->wait(*task, os::monotonic_now() + kTestPatience));
  }
  submit();
  const std::uint64_t number = next_put();
  EXPECT_NE(number, 0U) << "after one of " << took << " ns";
  grant(number, 0);
  EXPECT_TRUE(ends_one());
}

TEST_F(Leases, NotOfAKernelThatMayBeLong) {
  begin_leased();
  ProgramCode code;
  code.kind = ProgramKind::kHostFunction;
  const Fault wrong = client_->programs().add(code, "unknown");
  ASSERT_FALSE(wrong) << wrong.reason;
  auto task = std::make_shared<Task>(client_.get());
  task->kernel = "unknown";
  ASSERT_FALSE(client_->submit(task, {}));
  EXPECT_EQ(next_put(), task->number);
}

// Memory is the daemon's to give, and copies may take long.
TEST_F(Leases, OnlyWhatTakesNoMemoryAndNoCopyToTheDevice) {
  begin_leased();
  std::vector<std::byte> bytes(2 * 64 * base::kKiB);
  const auto submit_on = [&](std::uint64_t flags, std::size_t size) {
    auto task = std::make_shared<Task>(client_.get());
    task->kernel = "brief";
    Argument& argument = task->arguments.emplace_back();
    argument.set = true;
    argument.flags = MCL_ARG_BUFFER | flags;
    argument.address = bytes.data();
    argument.size = size;
    EXPECT_FALSE(client_->bind(argument));
    const Fault wrong = client_->submit(task, {});
    EXPECT_FALSE(wrong) << wrong.reason;
    return task;
  };
  const auto runs_at_once = [&](std::uint64_t flags, std::size_t size) {
    const auto task = submit_on(flags, size);
    const std::uint64_t number = next_put();
    if (number == 0) {
      EXPECT_TRUE(backend_->end(false));
    } else {
      grant(number, 0);
      EXPECT_TRUE(ends_one());
    }
    EXPECT_TRUE(client_->wait(*task, os::monotonic_now() + kTestPatience));
    return number == 0;
  };
  EXPECT_FALSE(runs_at_once(MCL_ARG_INPUT, 100)) << "memory for this task";
  const std::uint64_t in = MCL_ARG_RESIDENT | MCL_ARG_INPUT, out = in | MCL_ARG_OUTPUT;
  EXPECT_FALSE(runs_at_once(in, bytes.size())) << "it is not there yet";
  EXPECT_TRUE(runs_at_once(in, bytes.size()));
  EXPECT_FALSE(runs_at_once(in | MCL_ARG_REWRITE, bytes.size())) << "the host has written it";
  EXPECT_TRUE(runs_at_once(in, bytes.size()));
  EXPECT_TRUE(runs_at_once(out, 100)) << "some bytes back";
  EXPECT_FALSE(runs_at_once(out, bytes.size())) << "many";
}

TEST_F(Leases, TheDaemonIsWokenBeforeItsRingIsFull) {
  begin_leased();
  fall_asleep();
  for (std::uint32_t i = 0; i + 1 < kRingSlots / 4; ++i) run_one();
  EXPECT_TRUE(sleeps());
  run_one();
  EXPECT_FALSE(sleeps());
  EXPECT_EQ(next_put(), 0U);
  EXPECT_EQ(ran_.size(), kRingSlots / 4);
}

// A GPU whose tasks end at once.
class Gpu final : public TestBackend {
 public:
  Gpu() : TestBackend(1, 4, DeviceClass::kGpu) {}
  void submit(const Work&, Completion& completion) override {
    Outcome outcome;
    outcome.run_began = os::monotonic_now();
    outcome.run_ended = outcome.run_began + 300;
    completion.finished(std::move(outcome));
  }
};

void run_in_turn(Client& client, int tasks) {
  ProgramCode code;
  code.kind = ProgramKind::kHostFunction;
  ASSERT_FALSE(client.programs().add(code, "brief"));
  for (int i = 0; i < tasks; ++i) {
    auto task = std::make_shared<Task>(&client);
    task->kernel = "brief";
    ASSERT_FALSE(client.submit(task, {}));
    ASSERT_TRUE(client.wait(*task, os::monotonic_now() + kTestPatience));
  }
}

TEST(ClientLeases, WhoAsksIsToldOfThem) {
  constexpr int kTasks = 250;  // for fewer than that the daemon is not woken
  ServedClient served;
  served.begin(std::make_unique<Gpu>(), "");
  if (testing::Test::HasFatalFailure()) return;
  auto observer = Observer::open(served.socket());
  ASSERT_TRUE(observer.ok()) << observer.error().message;
  run_in_turn(served.client(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it sleeps
  run_in_turn(served.client(), kTasks);
  const auto state = observer.value()->snapshot();
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_NE(state.value().find(R"("finished":251)"), std::string::npos) << state.value();
  observer.value().reset();
  served.end();
}

// Many may lie in the ring of a daemon that is asleep when the client goes.
TEST(ClientLeases, TheDaemonCountsAllThatRanSo) {
  constexpr int kTasks = 1000;
  for (int round = 0; round < 10; ++round) {
    ServedClient served;
    served.begin(std::make_unique<Gpu>(), "");
    if (testing::Test::HasFatalFailure()) return;
    run_in_turn(served.client(), kTasks);
    const HeardTasks& heard = served.end();
    EXPECT_EQ(heard.tasks, std::uint32_t{kTasks});
    EXPECT_EQ(heard.failed, 0U);
  }
}

}  // namespace
}  // namespace amasia::devices
