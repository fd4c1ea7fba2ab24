// SPDX-License-Identifier: Apache-2.0
// Works on a planted driver: what is enqueued for them, and what is told of their ends.
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "devices/backends/cuda/cuda_device.hpp"
#include "devices/backends/cuda/planted_driver.hpp"

namespace amasia::devices::cuda {
namespace {

struct Told final : Completion {
  void finished(Outcome&& told) noexcept override {
    outcome = std::move(told);
    by = os::current_thread_id();
    times.fetch_add(1);
  }
  Outcome outcome;
  int by = 0;
  std::atomic<int> times{0};
};

class CudaFlights : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open(driver_, 0);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    device_ = std::move(opened).value();
    ProgramCode code;
    code.kind = ProgramKind::kBinary;
    code.code = "planted";
    Outcome outcome;
    program_ = Program::load(*device_, code, cache_, &outcome);
    ASSERT_NE(program_, nullptr) << outcome.message;
    count_ = Kernel::make(*device_, program_, "count", 1, &outcome);
    crash_ = Kernel::make(*device_, program_, "crash", 0, &outcome);
    memory_ = Memory::make(*device_, sizeof(long), &outcome);
    ASSERT_NE(memory_, nullptr) << outcome.message;
    const long none = 0;
    copy(none, true);
  }
  void TearDown() override {
    memory_.reset();
    count_.reset();
    crash_.reset();
    program_.reset();
    device_.reset();
    EXPECT_EQ(gpus_.allocated, 0);
    EXPECT_EQ(gpus_.pinned, 0);
    EXPECT_EQ(gpus_.graphs, 0);
  }
  void copy(const long& value, bool inwards) {
    const Copy whole{memory_.get(), 0, const_cast<long*>(&value), sizeof value};
    Work work;
    (inwards ? work.to_device : work.to_host) = {&whole, 1};
    Told told;
    device_->submit(work, told);
    await(told);
    EXPECT_EQ(told.outcome.failure, Failure::kNone) << told.outcome.message;
  }
  long sum() {
    long value = -1;
    copy(value, false);
    return value;
  }
  // What has not come by then does not come: the test ends there, since the device would not.
  static void await(const Told& told) {
    const Nanos deadline = os::monotonic_now() + 60 * base::kSecond;
    while (told.times.load() == 0) {
      AMASIA_CHECK(os::monotonic_now() < deadline, "an end is told within a minute");
      os::yield_core();
    }
  }
  // Adds one to the sum. Wrong: with an argument too many.
  Submission one(Told& told, bool wrong = false) {
    static KernelArgument arguments[2];
    for (KernelArgument& argument : arguments) {
      argument = {.kind = ArgumentKind::kBuffer, .buffer = memory_.get()};
    }
    Submission submission;
    submission.work.kernel = count_.get();
    submission.work.arguments = std::span(arguments).first(wrong ? 2 : 1);
    submission.completion = &told;
    return submission;
  }
  std::vector<Submission> row(std::deque<Told>& all, std::size_t count) {
    std::vector<Submission> works;
    for (std::size_t i = 0; i < count; ++i) works.push_back(one(all.emplace_back()));
    return works;
  }

  planted::Gpus gpus_;
  const Driver driver_ = planted::Gpus::driver();
  ProgramCache cache_{""};
  std::unique_ptr<Device> device_;
  std::shared_ptr<Program> program_;
  std::unique_ptr<Kernel> count_, crash_;
  std::unique_ptr<Memory> memory_;
};

TEST_F(CudaFlights, BriefWorksFlyTogetherOnceTheirTimeIsKnown) {
  std::deque<Told> all;
  device_->submit(row(all, 1));
  await(all.back());
  const long before = gpus_.timed_events;
  auto works = row(all, 160);
  for (Submission& one : works) one.work.wants_times = false;
  device_->submit(works);
  for (const Told& told : all) await(told);
  EXPECT_EQ(gpus_.timed_events - before, 3 * 3) << "three for 16 works, of the next three";
  for (const Told& told : all) {
    EXPECT_EQ(told.times, 1);
    EXPECT_EQ(told.outcome.failure, Failure::kNone) << told.outcome.message;
    EXPECT_NE(told.outcome.run_began, 0);
    EXPECT_LE(told.outcome.run_began, told.outcome.run_ended);
  }
  EXPECT_EQ(sum(), 161);
}

TEST_F(CudaFlights, SixteenAreOneCommandOnceThatPays) {
  std::deque<Told> all;
  device_->submit(row(all, 1));
  await(all.back());
  for (const bool wants_times : {false, true}) {
    auto works = row(all, 320);
    for (Submission& one : works) one.work.wants_times = wants_times;
    device_->submit(works);
    for (const Told& told : all) await(told);
  }
  EXPECT_EQ(gpus_.launches, 1 + 3 * 16) << "the first few";
  EXPECT_EQ(gpus_.row_launches, 17 + 20);
  EXPECT_EQ(gpus_.nodes_set, 0) << "they are all the same";
  for (const Told& told : all) {
    EXPECT_EQ(told.times, 1);
    EXPECT_EQ(told.outcome.failure, Failure::kNone) << told.outcome.message;
    EXPECT_NE(told.outcome.run_began, 0);
    EXPECT_LE(told.outcome.run_began, told.outcome.run_ended);
  }
  EXPECT_EQ(sum(), 641);
  // Each of a row has its own sizes.
  auto works = row(all, 16);
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i].work.local[0] = works[i].work.global[0] = 4;
    if (i == 7) works[i].work.local[0] = 2;
  }
  const long before = gpus_.row_launches;
  device_->submit(works);
  for (const Told& told : all) await(told);
  EXPECT_EQ(gpus_.row_launches, before + 1);
  EXPECT_GE(gpus_.nodes_set, 16);
  EXPECT_EQ(sum(), 641 + 16 * 4);
}

TEST_F(CudaFlights, WhereTheDriverTakesNoRowsTheyAreLaunchedOneByOne) {
  gpus_.refuses_rows = true;
  std::deque<Told> all;
  device_->submit(row(all, 1));
  await(all.back());
  device_->submit(row(all, 320));
  for (const Told& told : all) await(told);
  EXPECT_EQ(gpus_.row_launches, 0);
  EXPECT_EQ(gpus_.graphs, 0) << "what was begun is given back";
  EXPECT_EQ(sum(), 321);
}

TEST_F(CudaFlights, AWrongOneAmongThemHarmsNoOther) {
  for (const std::size_t wrong : {0U, 7U, 15U}) {
    std::deque<Told> all;
    auto works = row(all, 16);
    const long before = sum();
    works[wrong] = one(all[wrong], true);
    device_->submit(works);
    for (std::size_t i = 0; i < all.size(); ++i) {
      await(all[i]);
      EXPECT_EQ(all[i].outcome.failure, i == wrong ? Failure::kArguments : Failure::kNone)
          << wrong << ", " << i << ": " << all[i].outcome.message;
    }
    EXPECT_EQ(sum(), before + 15);
  }
}

TEST_F(CudaFlights, SomeWorksAreMeasuredUnlessAllTimesAreWanted) {
  const auto run = [&](int works, bool wants_times) {
    const long before = gpus_.timed_events;
    for (int i = 0; i < works; ++i) {
      Told told;
      Submission work = one(told);
      work.work.wants_times = wants_times;
      device_->submit({&work, 1});
      await(told);
      EXPECT_NE(told.outcome.run_began, 0) << i;
      EXPECT_LE(told.outcome.run_began, told.outcome.run_ended) << i;
      EXPECT_LE(told.outcome.run_ended, os::monotonic_now()) << i;
    }
    return gpus_.timed_events - before;
  };
  EXPECT_EQ(run(164, false), 2 * (4 + 10)) << "the first four, and each sixteenth";
  EXPECT_EQ(run(50, true), 2 * 50);
}

TEST_F(CudaFlights, WhoWaitsFindsTheEndItself) {
  // On a loaded machine the end may come too late for this thread.
  const Nanos deadline = os::monotonic_now() + 20 * base::kSecond;
  bool is_own = false;
  long works = 0;
  while (!is_own && os::monotonic_now() < deadline) {
    Told told;
    Submission work = one(told);
    work.work.caller_waits = CallerWaits::kAtOnce;
    device_->submit({&work, 1});
    Watch::wait_sent(told, os::monotonic_now() + base::kSecond);
    await(told);
    is_own = told.by == os::current_thread_id();
    ++works;
  }
  EXPECT_TRUE(is_own);
  EXPECT_EQ(sum(), works);
}

// What was to be waited for, and was not, is not waited for after another submission.
TEST_F(CudaFlights, OnlyTheLastSubmissionIsWaitedFor) {
  auto opened = Device::open(driver_, 1);
  ASSERT_TRUE(opened.ok());
  const auto other = std::move(opened).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until nobody looks any more
  gpus_.hold(true);
  Told first, second;
  Submission work = one(first);
  work.work.caller_waits = CallerWaits::kAtOnce;
  device_->submit({&work, 1});
  const long before = gpus_.queries[0];
  Submission nothing;
  nothing.completion = &second;
  other->submit({&nothing, 1});
  Watch::wait_sent(second, os::monotonic_now() + base::kSecond);
  EXPECT_EQ(gpus_.queries[0], before);
  gpus_.hold(false);
  await(second);
  sum();  // has the first device's thread look
  await(first);
  EXPECT_EQ(sum(), 1);
}

TEST_F(CudaFlights, ACrashEndsAllThatAreUnderWay) {
  std::deque<Told> all;
  device_->submit(row(all, 1));
  await(all.back());
  gpus_.hold(true);
  Told crashed;
  Submission crash;
  crash.work.kernel = crash_.get();
  crash.completion = &crashed;
  device_->submit({&crash, 1}, 0);
  const auto works = row(all, 40);
  device_->submit(works, 0);  // behind it
  gpus_.hold(false);
  await(crashed);
  for (std::size_t i = 0; i < all.size(); ++i) {
    await(all[i]);
    if (i > 0) {
      EXPECT_NE(all[i].outcome.message.find("PLANTED_CRASH"), std::string::npos) << i;
    }
  }
}

}  // namespace
}  // namespace amasia::devices::cuda
