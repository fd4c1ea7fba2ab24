// SPDX-License-Identifier: Apache-2.0
// Grants that reach a client at a bad moment: the test plays the daemon.
#include <gtest/gtest.h>

#include <vector>

#include "devices/client/test_backend.hpp"
#include "devices/client/test_daemon.hpp"

namespace amasia::devices {
namespace {

// One device, on which everything has ended when it is submitted.
class AtOnce final : public TestBackend {
 public:
  AtOnce() : TestBackend(1, 2) {}
  void submit(const Work&, Completion& completion) override { completion.finished(Outcome{}); }
};

class Unheard : public PlayedDaemon {
 protected:
  void SetUp() override {
    PlayedDaemon::SetUp();
    start_client(std::make_unique<AtOnce>());
  }
  // Submits tasks and grants them all, while the client sleeps and is not woken.
  void grant_unheard(int count) {
    for (int i = 0; i < count; ++i) {
      auto task = std::make_shared<Task>(client_.get());
      const Fault wrong = client_->submit(task, {});
      ASSERT_FALSE(wrong) << wrong.reason;
      task->sleepers.fetch_add(1);  // of whom see_all_end() is one
      tasks_.push_back(std::move(task));
      Record record;
      ASSERT_EQ(daemon_.from_client->pop(&record), RingState::kOk);
      const std::uint64_t number = record.as<PutRecord>().task;
      ASSERT_EQ(daemon_.to_client->push(short_record(RecordKind::kGrant, number)), RingState::kOk);
    }
    while (daemon_.region->to_client.control.sleeps.load() == kAwake) os::yield_core();
    daemon_.to_client->publish();
  }
  // Sees, without Client::wait, which would read the ring and run what it finds.
  void see_all_end() {
    const Nanos deadline = os::monotonic_now() + kTestPatience;
    for (const auto& task : tasks_) {
      while (task->ended.load() == 0 && os::monotonic_now() < deadline) {
        os::futex_wait(task->ended, 0, std::max<Nanos>(deadline - os::monotonic_now(), 0));
      }
      ASSERT_EQ(task->ended.load(), 1U) << "task " << task->number;
      EXPECT_FALSE(task->failure) << task->failure.reason;
    }
  }

  std::vector<std::shared_ptr<Task>> tasks_;
};

// The grant lies in the ring of a client that is asleep, and what wakes it is the daemon's end:
// the task was granted, so it runs, though no more records will come.
TEST_F(Unheard, WhatItGrantedLastIsRun) {
  grant_unheard(1);
  daemon_.socket.close();
  see_all_end();
}

// Who waits for one task reads the grants of many, and goes when that one has ended: somebody else
// runs the others.
TEST_F(Unheard, WhoWaitsForOneTaskDoesNotStrandOthers) {
  grant_unheard(40);
  EXPECT_TRUE(client_->wait(*tasks_.front(), os::monotonic_now() + kTestPatience));
  see_all_end();
}

}  // namespace
}  // namespace amasia::devices
