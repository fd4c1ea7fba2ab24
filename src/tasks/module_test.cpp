// SPDX-License-Identifier: Apache-2.0
// A module of a library that is made for this test: operations that end after some polls, or when
// a foreign thread says so.
#include "amasia/module.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "os/os.hpp"

namespace amasia::tasks {
namespace {

class Echo : public module {
 public:
  explicit Echo(runtime& of) : runtime_(of) { runtime_.attach(*this); }
  ~Echo() override { runtime_.detach(*this); }

  const char* name() const noexcept override { return "echo"; }
  void initialise(module_host& host) override {
    host_ = &host;
    thread_ = std::this_thread::get_id();
    ++initialised;
  }
  void finalise() noexcept override { ++finalised; }

  // Ready after so many polls; its value is how many operations were started before.
  future<long> after(int count) {
    promise<long> result;
    future<long> value = result.get_future();
    host_->call([this, count, result = std::move(result), held = host_->hold_scope()]() mutable {
      if (std::this_thread::get_id() != thread_) ++wrong_thread;
      pending_.push_back({count, started++, std::move(result), std::move(held)});
      host_->poll_me();
    });
    return value;
  }
  // Ends in its call, though a poll was asked for.
  future<void> at_once() {
    promise<void> result;
    future<void> value = result.get_future();
    host_->call([this, result = std::move(result), held = host_->hold_scope()]() mutable {
      host_->poll_me();
      result.put();
    });
    return value;
  }
  // Not an operation with a future: a thread of its own creates `count` tasks of `body` in the
  // caller's finish scope, and has `failure` leave it, unless that is empty.
  template <typename Body>
  void tasks_from_elsewhere(int count, Body body, std::exception_ptr failure) {
    threads.emplace_back([this, count, body, failure, held = host_->hold_scope()]() mutable {
      for (int n = 0; n < count; ++n) host_->async_within(held, body);
      if (failure != nullptr) held.fail(failure);
      held.release();
    });
  }
  hold hold_here() { return host_->hold_scope(); }
  hold hold_of_others() { return host_->hold_scope_of_others(); }
  void judge_deadlocks() { host_->judge_deadlocks(); }
  void stalled() noexcept override { stalled_calls.fetch_add(1); }
  std::atomic<long> stalled_calls{0};
  module_host& host() { return *host_; }
  bool some_worker_sleeps() const { return host_->some_worker_sleeps(); }
  void want_idleness() { host_->tell_me_of_idleness(); }
  void idle() noexcept override { idle_calls.fetch_add(1); }
  std::atomic<long> idle_calls{0};

  // Ready when a thread of its own has slept.
  future<void> from_elsewhere(std::chrono::milliseconds sleep) {
    promise<void> result;
    future<void> value = result.get_future();
    host_->call([&, sleep, result = std::move(result), held = host_->hold_scope()]() mutable {
      threads.emplace_back([sleep, result = std::move(result), held = std::move(held)]() mutable {
        std::this_thread::sleep_for(sleep);
        result.put();
      });
    });
    return value;
  }

  poll_result poll() noexcept override {
    ++polls;
    if (std::this_thread::get_id() != thread_) ++wrong_thread;
    bool some = false;
    for (std::size_t n = 0; n < pending_.size();) {
      if (--pending_[n].polls > 0 || os::monotonic_now() < until) {
        ++n;
        continue;
      }
      Pending over = std::move(pending_[n]);
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(n));
      over.result.put(over.number);
      some = true;
    }
    if (pending_.empty()) return poll_result::nothing_left;
    return some ? poll_result::some_completed : poll_result::none_completed;
  }

  int initialised = 0, finalised = 0, wrong_thread = 0;
  long started = 0, polls = 0;
  Nanos until = 0;  // nothing completes before
  std::vector<std::thread> threads;

 private:
  struct Pending {
    int polls;
    long number;
    promise<long> result;
    hold held;
  };
  runtime& runtime_;
  module_host* host_ = nullptr;
  std::thread::id thread_;
  std::vector<Pending> pending_;
};

class Modules : public ::testing::TestWithParam<unsigned> {
 protected:
  runtime workers{{.workers = GetParam()}};
  Echo echo{workers};
};
INSTANTIATE_TEST_SUITE_P(Workers, Modules, ::testing::Values(1u, 2u, 4u));

TEST_P(Modules, AnswersFromEveryWorkerOnOneThread) {
  std::atomic<long> sum{0};
  workers.run([&] {
    forasync(range<1>{{0}, {2000}, {1}}, [&](std::ptrdiff_t n) {
      sum.fetch_add(echo.after(static_cast<int>(n % 3)).get(), std::memory_order_relaxed);
    });
  });
  EXPECT_EQ(sum.load(), 2000 * 1999 / 2);
  EXPECT_EQ(echo.wrong_thread, 0);
}

// The fixture detaches the module, which nobody may have polled since.
TEST_P(Modules, MayBeDetachedAfterAnOperationThatACallHasEnded) {
  for (int n = 0; n < 100; ++n) {
    workers.run([&] { echo.at_once().get(); });
  }
}

// A task that moves from worker to worker between its calls.
TEST_P(Modules, KeepsEachTasksOrder) {
  std::atomic<int> disorder{0};
  workers.run([&] {
    finish([&] {
      for (int task = 0; task < 8; ++task) {
        async([&] {
          long last = -1;
          std::vector<future<long>> all;
          for (int n = 0; n < 200; ++n) {
            all.push_back(echo.after(1));
            if (n % 3 == 0) yield();
          }
          for (auto& one : all) {
            if (one.get() <= last) ++disorder;
            last = one.get();
          }
        });
      }
    });
  });
  EXPECT_EQ(disorder.load(), 0);
}

TEST_P(Modules, FinishWaitsForOperations) {
  workers.run([&] {
    future<long> inside;
    finish([&] { async([&] { inside = echo.after(100); }); });
    EXPECT_TRUE(inside.ready());
    const auto later = finish_future([&] { echo.after(50); });
    later.wait();
    EXPECT_EQ(echo.started, 2);
  });
}

// Loops and nested tasks that never come back to the worker's own loop.
TEST_P(Modules, IsPolledBetweenTasksAndTiles) {
  workers.run([&] {
    const future<long> first = echo.after(5);
    std::atomic<bool> seen{false};
    std::stop_source stop;
    finish(stop.get_token(), [&] {
      forasync(range<1>{{0}, {1'000'000'000'000}, {1}}, [&](std::ptrdiff_t) {
        if (!first.ready()) return;
        seen.store(true);
        stop.request_stop();
      });
    });
    EXPECT_TRUE(seen.load());
  });
}

TEST_P(Modules, IsNotPolledWithoutOperations) {
  workers.run([&] {
    echo.after(3).get();
    const long before = echo.polls;
    forasync(0, 10'000, [](std::ptrdiff_t) { yield(); });
    EXPECT_LE(echo.polls, before + 1);  // one may be left to learn that there is nothing
  });
}

// While an operation is outstanding and nothing else is to be done, most of the time is slept. CPU
// time does not grow with what else the machine does.
TEST_P(Modules, WaitsWithLittleProcessorTime) {
  workers.run([&] {
    echo.until = os::monotonic_now() + 300 * base::kMillisecond;
    const Nanos cpu = os::thread_cpu_time(static_cast<int>(getpid()));
    echo.after(1).get();
    EXPECT_LT(os::thread_cpu_time(static_cast<int>(getpid())) - cpu, 75 * base::kMillisecond);
    EXPECT_GT(echo.polls, 30);  // two after each sleep of 1 ms, which a loaded machine prolongs
  });
}

TEST_P(Modules, ForeignThreadsMayComplete) {
  workers.run([&] {
    finish([&] {
      for (int n = 0; n < 8; ++n) echo.from_elsewhere(std::chrono::milliseconds(n));
    });
  });
  for (auto& thread : echo.threads) thread.join();
}

TEST_P(Modules, ForeignThreadsMayCreateTasks) {
  std::atomic<int> ran{0};
  workers.run([&] {
    for (int round = 1; round <= 20; ++round) {
      finish([&] {
        echo.tasks_from_elsewhere(
            10, [&] { async([&] { ran.fetch_add(1); }); }, nullptr);
      });
      EXPECT_EQ(ran.load(), 10 * round);
    }
  });
  for (auto& thread : echo.threads) thread.join();
}

TEST_P(Modules, WhatFailsWithoutAFutureLeavesTheFinish) {
  std::atomic<int> ran{0};
  const auto failure = std::make_exception_ptr(std::runtime_error("elsewhere"));
  workers.run([&] {
    EXPECT_THROW(
        finish([&] { echo.tasks_from_elsewhere(3, [&] { ran.fetch_add(1); }, failure); }),
        std::runtime_error);
    EXPECT_EQ(ran.load(), 3);
  });
  for (auto& thread : echo.threads) thread.join();
}

TEST_P(Modules, AreToldOfIdlenessIfTheyWantTo) {
  const auto wait_asleep = [&] { echo.from_elsewhere(std::chrono::milliseconds(20)).get(); };
  workers.run(wait_asleep);
  for (auto& thread : echo.threads) thread.join();
  echo.threads.clear();
  EXPECT_EQ(echo.idle_calls.load(), 0);
  echo.want_idleness();
  workers.run([&] {
    promise<void> enough;
    const auto told = enough.get_future();
    // All workers come to sleep while this one waits; then one that sleeps is to be seen.
    std::thread watcher([&] {
      while (!echo.some_worker_sleeps() || echo.idle_calls.load() == 0) std::this_thread::yield();
      enough.put();
    });
    auto held = echo.hold_here();
    told.get();
    held.release();
    watcher.join();
  });
}

// Nobody asks when the workers go to sleep, as the operation may still put what is waited for.
TEST(Deadlock, IsSeenWhenTheLastOperationEndsAfterAllHaveGoneToSleep) {
  for (const unsigned count : {1u, 2u}) {
    std::string report;
    promise<void> never;
    runtime workers(
        {.workers = count, .detect_deadlock = true, .on_deadlock = [&](const std::string& text) {
           report = text;
           never.put();
         }});
    Echo echo(workers);
    std::thread other;
    workers.run([&] {
      other = std::thread([&, held = echo.hold_here()]() mutable {
        const auto asleep = [&] {
          for (const auto& worker : workers.statistics()) {
            if (worker.slept == 0) return false;
          }
          return true;
        };
        while (!asleep()) std::this_thread::yield();
        EXPECT_EQ(report, "");
        held.release();
      });
      never.get_future().wait();
    });
    other.join();
    EXPECT_NE(report.find("a task waits for a future at "), std::string::npos) << report;
  }
}

// What a task waits for may come from another process: the module says what is a deadlock.
TEST(Deadlock, IsJudgedByAModuleThatWantsTo) {
  std::string report;
  runtime workers(
      {.workers = 2, .detect_deadlock = true, .on_deadlock = [&](const std::string& text) {
         report = text;
       }});
  Echo echo(workers), second(workers);
  echo.judge_deadlocks();
  EXPECT_THROW(second.judge_deadlocks(), std::logic_error);
  promise<void> first, later;
  const auto own = where::current();
  std::vector<std::string> waits;
  std::thread other;
  EXPECT_FALSE(echo.host().is_stalled());
  workers.run([&] {
    auto held = echo.hold_of_others();  // hides nothing
    auto operation = second.hold_here();
    other = std::thread([&, operation = std::move(operation)]() mutable {
      while (!second.some_worker_sleeps()) std::this_thread::yield();
      EXPECT_EQ(echo.stalled_calls.load(), 0);
      EXPECT_FALSE(echo.host().is_stalled());
      operation.release();
      while (echo.stalled_calls.load() == 0) std::this_thread::yield();
      while (!echo.host().is_stalled()) std::this_thread::yield();
      waits = echo.host().waits(own);
      EXPECT_EQ(echo.host().waits({}).size(), waits.size() + 1);
      echo.host().report_deadlock("said by the module");
      later.put();
      first.put();
    });
    async([&] { later.get_future().wait(own); });
    first.get_future().wait();
    held.release();
  });
  other.join();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_NE(waits[0].find("a task waits for a future at "), std::string::npos) << waits[0];
  EXPECT_EQ(report, "said by the module");
}

TEST_P(Modules, RefusesWhatIsOutOfPlace) {
  EXPECT_THROW(echo.after(1), std::logic_error);
  workers.run([&] {
    EXPECT_THROW(Echo second(workers), std::logic_error);
  });
  std::thread([&] { EXPECT_THROW(workers.run([] {}), std::logic_error); }).join();
  EXPECT_EQ(echo.initialised, 1);
  EXPECT_EQ(echo.finalised, 0);
}

}  // namespace
}  // namespace amasia::tasks
