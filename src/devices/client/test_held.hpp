// SPDX-License-Identifier: Apache-2.0
// For tests of what a client says of brief tasks, and when: the test plays the daemon, and ends
// what runs.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "devices/client/test_backend.hpp"
#include "devices/client/test_daemon.hpp"

namespace amasia::devices {

// Devices whose kernels end when the test says so, after a time that is brief where it says nothing
// else.
class Held final : public TestBackend {
 public:
  using TestBackend::TestBackend;
  void submit(const Work&, Completion& completion) override {
    os::MutexLock lock(lock_);
    held_.push_back(&completion);
  }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes, void*, Outcome*) override {
    return std::make_unique<DeviceBuffer>();
  }
  bool has(std::size_t tasks) {
    os::MutexLock lock(lock_);
    return held_.size() == tasks;
  }
  // The test's thread: the one that was submitted last, or first. False: there is none.
  bool end(bool last, Nanos took = 300) {
    Completion* ended = nullptr;
    {
      os::MutexLock lock(lock_);
      if (held_.empty()) return false;
      ended = last ? held_.back() : held_.front();
      held_.erase(last ? held_.end() - 1 : held_.begin());
    }
    Outcome outcome;
    outcome.run_began = os::monotonic_now();
    outcome.run_ended = outcome.run_began + took;
    ended->finished(std::move(outcome));
    return true;
  }

 private:
  os::Mutex lock_;
  std::deque<Completion*> held_ AMASIA_GUARDED_BY(lock_);
};

// Whether it becomes true.
inline bool comes(const std::function<bool()>& condition) {
  const Nanos deadline = os::monotonic_now() + kTestPatience;
  while (!condition()) {
    if (os::monotonic_now() >= deadline) return false;
    os::yield_core();
  }
  return true;
}

// A client of the played daemon with brief tasks, on such devices.
class HeldTasks : public PlayedDaemon {
 protected:
  // With a kernel that the client knows to be brief.
  void begin(std::size_t devices, std::uint32_t depth, std::uint32_t run_most = 64,
             bool lease = false, DeviceClass device_class = DeviceClass::kCpu) {
    auto backend = std::make_unique<Held>(devices, depth, device_class);
    backend_ = backend.get();
    start_client(std::move(backend), run_most);
    ProgramCode code;
    code.kind = ProgramKind::kHostFunction;
    const Fault wrong = client_->programs().add(code, "brief");
    ASSERT_FALSE(wrong) << wrong.reason;
    submit();
    grant(next_put(), 0, lease);
    ASSERT_TRUE(ends_one());
  }
  void TearDown() override {
    daemon_.socket.close();
    while (backend_ != nullptr && client_->unfinished() != 0) backend_->end(false);
    PlayedDaemon::TearDown();
  }
  std::shared_ptr<Task> submit(const std::vector<std::shared_ptr<Task>>& dependencies = {}) {
    auto task = std::make_shared<Task>(client_.get());
    task->kernel = "brief";
    const Fault wrong = client_->submit(task, dependencies);
    EXPECT_FALSE(wrong) << wrong.reason;
    return task;
  }
  void read() {
    Record record;
    while (daemon_.from_client->pop(&record) == RingState::kOk) {
      if (record.kind() == RecordKind::kPut) puts_.push_back(record.as<PutRecord>().task);
      if (record.kind() == RecordKind::kFinished) ++told_ends_;
      if (record.kind() == RecordKind::kRan) ran_.push_back(record.as<RanRecord>());
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
  void grant(std::uint64_t number, std::uint8_t device, bool lease = false) {
    ASSERT_NE(number, 0U) << "nothing was put";
    say(short_record(RecordKind::kGrant, number, device, 0, lease));
  }
  void say(const Record& record) {
    ASSERT_EQ(daemon_.to_client->push(record), RingState::kOk);
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
  std::vector<RanRecord> ran_;
};

}  // namespace amasia::devices
