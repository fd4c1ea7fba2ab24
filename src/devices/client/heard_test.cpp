// SPDX-License-Identifier: Apache-2.0
// What wakes a daemon that sleeps until something urgent comes, of runs of brief tasks and of ends:
// the test plays the daemon.
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "devices/client/test_backend.hpp"
#include "devices/client/test_daemon.hpp"

namespace amasia::devices {
namespace {

// Devices whose kernels end when the test says so, after a time that is called brief.
class Held final : public TestBackend {
 public:
  using TestBackend::TestBackend;
  void submit(const Work&, Completion& completion) override {
    os::MutexLock lock(lock_);
    held_.push_back(&completion);
  }
  bool has(std::size_t tasks) {
    os::MutexLock lock(lock_);
    return held_.size() == tasks;
  }
  // The test's thread: the one that was submitted last, or first. False: there is none.
  bool end(bool last) {
    Completion* ended = nullptr;
    {
      os::MutexLock lock(lock_);
      if (held_.empty()) return false;
      ended = last ? held_.back() : held_.front();
      held_.erase(last ? held_.end() - 1 : held_.begin());
    }
    Outcome outcome;
    outcome.run_began = os::monotonic_now();
    outcome.run_ended = outcome.run_began + 300;
    ended->finished(std::move(outcome));
    return true;
  }

 private:
  os::Mutex lock_;
  std::deque<Completion*> held_ AMASIA_GUARDED_BY(lock_);
};

// Whether it becomes true.
bool comes(const std::function<bool()>& condition) {
  const Nanos deadline = os::monotonic_now() + kTestPatience;
  while (!condition()) {
    if (os::monotonic_now() >= deadline) return false;
    os::yield_core();
  }
  return true;
}

class Heard : public PlayedDaemon {
 protected:
  // With a kernel that the client knows to be brief.
  void begin(std::size_t devices, std::uint32_t depth, std::uint32_t run_most = 64) {
    auto backend = std::make_unique<Held>(devices, depth);
    backend_ = backend.get();
    start_client(std::move(backend), run_most);
    ProgramCode code;
    code.kind = ProgramKind::kHostFunction;
    const Fault wrong = client_->programs().add(code, "brief");
    ASSERT_FALSE(wrong) << wrong.reason;
    submit();
    grant(next_put(), 0);
    ASSERT_TRUE(ends_one());
  }
  void TearDown() override {
    daemon_.socket.close();
    while (backend_ != nullptr && client_->unfinished() != 0) backend_->end(false);
    PlayedDaemon::TearDown();
  }
  void submit() {
    auto task = std::make_shared<Task>(client_.get());
    task->kernel = "brief";
    const Fault wrong = client_->submit(task, {});
    ASSERT_FALSE(wrong) << wrong.reason;
  }
  void read() {
    Record record;
    while (daemon_.from_client->pop(&record) == RingState::kOk) {
      if (record.kind() == RecordKind::kPut) puts_.push_back(record.as<PutRecord>().task);
      if (record.kind() == RecordKind::kFinished) ++told_ends_;
    }
  }
  // The number of the next task, or run, that has been put; 0: there is none.
  std::uint64_t next_put() {
    read();
    if (puts_.empty()) return 0;
    const std::uint64_t number = puts_.front();
    puts_.pop_front();
    return number;
  }
  // Ends a task that was put alone, as soon as it is submitted, and hears of it. Another thread of
  // the client may be the one that tells.
  bool ends_one() {
    const int before = told_ends_;
    return comes([&] { return backend_->end(false); }) && comes([&] {
             read();
             return told_ends_ == before + 1;
           });
  }
  void grant(std::uint64_t number, std::uint8_t device) {
    ASSERT_NE(number, 0U) << "nothing was put";
    ASSERT_EQ(daemon_.to_client->push(short_record(RecordKind::kGrant, number, device)),
              RingState::kOk);
    if (daemon_.to_client->publish()) daemon_.wakes_client.raise();
  }
  // Reads all, and sleeps.
  void fall_asleep(Urgency least = Urgency::kOwn) {
    ASSERT_EQ(next_put(), 0U) << "a put that was not looked at";
    ASSERT_TRUE(daemon_.from_client->may_sleep(least));
  }
  bool sleeps() const { return daemon_.region->to_daemon.control.sleeps.load() != kAwake; }

  Held* backend_ = nullptr;
  std::deque<std::uint64_t> puts_;  // read, not looked at
  int told_ends_ = 0;
};

TEST_F(Heard, TheNextRunIsWhileAnotherDeviceHasNothing) {
  begin(2, 1);
  fall_asleep();
  submit();
  EXPECT_FALSE(sleeps()) << "the first run";
  const std::uint64_t first = next_put();
  fall_asleep();
  submit();
  EXPECT_FALSE(sleeps()) << "a second device has nothing to do";
  const std::uint64_t second = next_put();
  fall_asleep();
  for (int i = 0; i < 100; ++i) submit();
  EXPECT_TRUE(sleeps()) << "there are two devices, and two runs to be given to them";
  grant(first, 0);
  grant(second, 1);
}

TEST_F(Heard, OneDeviceThatIsBusyWakesForNone) {
  begin(1, 1);
  fall_asleep();
  submit();
  EXPECT_FALSE(sleeps());
  const std::uint64_t first = next_put();
  fall_asleep();
  for (int i = 0; i < 100; ++i) submit();
  EXPECT_TRUE(sleeps()) << "the run that it knows of keeps the device busy";
  grant(first, 0);
  ASSERT_TRUE(comes([&] { return backend_->has(1); }));
  EXPECT_TRUE(sleeps()) << "it does so now";
  ASSERT_TRUE(comes([&] { return backend_->end(false); }));
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "the device has nothing to do any more";
}

// The grant of one task to a device that takes more: what was put meanwhile need not wait for the
// end of that task, which may take long.
TEST_F(Heard, ADeviceWithRoomIsGivenTheNextRunBeforeTheFirstHasEnded) {
  begin(1, 2);
  fall_asleep();
  submit();
  const std::uint64_t first = next_put();
  fall_asleep();
  submit();
  EXPECT_TRUE(sleeps()) << "the run that it knows of goes there";
  grant(first, 0);
  ASSERT_TRUE(comes([&] { return backend_->has(1); }));
  EXPECT_FALSE(sleeps()) << "there is room beside it";
}

// A run tells of its end when all its tasks have ended.
TEST_F(Heard, WhereTheLastTaskOfARunTakesLongTheNextOneIsHeardBeforeItsEnd) {
  begin(1, 2);
  for (int i = 0; i < 2 + 5; ++i) submit();
  for (int i = 0; i < 2; ++i) {
    grant(next_put(), 0);
    ASSERT_TRUE(ends_one());
  }
  grant(next_put(), 0);  // what had gathered
  ASSERT_TRUE(comes([&] { return backend_->has(5); }));
  submit();
  const std::uint64_t known = next_put();
  fall_asleep();
  submit();
  grant(known, 0);
  ASSERT_TRUE(comes([&] { return backend_->has(5 + 1); }));
  backend_->end(true);
  for (int i = 0; i < 3; ++i) backend_->end(false);
  EXPECT_TRUE(sleeps()) << "there is no room";
  backend_->end(false);
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "there is";
}

TEST_F(Heard, AnEndThatOthersWaitForWhenHalfOfWhatWasGrantedHasEnded) {
  begin(1, 4, 1);
  for (int i = 0; i < 4; ++i) submit();
  for (int i = 0; i < 4; ++i) grant(next_put(), 0);
  ASSERT_TRUE(comes([&] { return backend_->has(4); }));
  fall_asleep(Urgency::kOthers);
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(sleeps()) << "the device has three";
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "two of four";
  fall_asleep(Urgency::kOwn);
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(sleeps()) << "the client itself waits for nothing";
  fall_asleep(Urgency::kOthers);
  ASSERT_TRUE(ends_one());
  EXPECT_TRUE(comes([&] { return !sleeps(); })) << "none is left";
}

}  // namespace
}  // namespace amasia::devices
