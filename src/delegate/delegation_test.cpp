// SPDX-License-Identifier: Apache-2.0
// Nodes as threads of one process over the loopback fabric: memory is coherent here, so that what
// is tested is the table at the origin and the calls' way there and back.
#include "delegate/call_slot.hpp"
#include "delegate/delegate.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace amasia::delegate {
namespace {

class Job {
 public:
  explicit Job(std::uint16_t nodes) : network_(fabric::make_loopback(nodes)) {
    for (std::uint16_t node = 0; node < nodes; ++node) {
      fabric::Fabric& fabric = network_->fabric(NodeId{node});
      delegations_.push_back(make_delegation(fabric));
      services_.emplace_back([this, &fabric] {
        while (!stop_.load(std::memory_order_relaxed)) {
          fabric::wait_and_poll(fabric, 16, 0, base::kMillisecond);
        }
      });
    }
  }
  ~Job() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& service : services_) service.join();
  }

  long call(int node, long number, std::array<std::uint64_t, 6> arguments) {
    os::TrappedCall call{number, arguments, 0};
    delegations_[static_cast<std::size_t>(node)]->answer(call);
    return call.result;
  }
  long futex(int node, std::atomic<std::uint32_t>& word, int operation, std::uint64_t value,
             const timespec* time = nullptr) {
    return call(node, SYS_futex,
                {address(&word), static_cast<std::uint64_t>(operation), value, address(time)});
  }
  static std::uint64_t address(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
  std::uint64_t outputs_written(int node) const {
    return delegations_[static_cast<std::size_t>(node)]->outputs_written();
  }
  // Of the calling thread; of all.
  CallTimes own_call_times(int node) const {
    return delegations_[static_cast<std::size_t>(node)]->own_call_times();
  }
  CallTimes call_times(int node) const {
    return delegations_[static_cast<std::size_t>(node)]->call_times();
  }
  Delegation::Counts counts(int node) const {
    return delegations_[static_cast<std::size_t>(node)]->counts();
  }

 private:
  std::unique_ptr<fabric::LoopbackNetwork> network_;
  std::vector<std::unique_ptr<Delegation>> delegations_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> services_;
};

TEST(Futexes, AChangedWordIsNotWaitedFor) {
  Job job(2);
  std::atomic<std::uint32_t> word{1};
  for (const int node : {0, 1}) {
    EXPECT_EQ(job.futex(node, word, FUTEX_WAIT, 0), -EAGAIN);
    EXPECT_EQ(job.futex(node, word, FUTEX_WAKE, 1), 0);
  }
}

TEST(Futexes, AWaitEndsAtItsTime) {
  Job job(2);
  std::atomic<std::uint32_t> word{0};
  const timespec millisecond{0, 1000000};
  for (const int node : {0, 1}) {
    EXPECT_EQ(job.futex(node, word, FUTEX_WAIT, 0, &millisecond), -ETIMEDOUT);
    EXPECT_EQ(job.futex(node, word, FUTEX_WAIT_BITSET, 0, &millisecond), -EINVAL);
  }
}

// A mutex as the C library makes one: 0 free, 1 taken, 2 taken and somebody may sleep.
class FutexMutex {
 public:
  explicit FutexMutex(Job& job) : job_(job) {}
  void lock(int node) {
    std::uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1)) return;
    while (word_.exchange(2) != 0) job_.futex(node, word_, FUTEX_WAIT, 2);
  }
  void unlock(int node) {
    if (word_.exchange(0) == 2) job_.futex(node, word_, FUTEX_WAKE, 1);
  }

 private:
  Job& job_;
  std::atomic<std::uint32_t> word_{0};
};

TEST(Futexes, AMutexHoldsAcrossNodesAndNoWakeUpIsLost) {
  constexpr int kNodes = 3, kThreads = 2, kRounds = 300;
  Job job(kNodes);
  FutexMutex mutex(job);
  int counter = 0;  // guarded by mutex
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kNodes * kThreads; ++thread) {
    threads.emplace_back([&, node = thread % kNodes] {
      for (int round = 0; round < kRounds; ++round) {
        mutex.lock(node);
        const int seen = counter;
        std::this_thread::yield();  // so that others do come and sleep
        counter = seen + 1;
        mutex.unlock(node);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kNodes * kThreads * kRounds);
  EXPECT_GT(job.counts(1).futex_calls + job.counts(2).futex_calls, 0u);
}

// A library that the runtime uses, too, has threads for the program: they wait in the kernel.
TEST(Futexes, ThreadsOfTheRuntimeAndOfTheProgramWakeEachOther) {
  Job job(2);
  std::atomic<std::uint32_t> word{0};
  const auto as_program = [](auto&& work) { work(); };
  const auto as_runtime = [](auto&& work) { os::in_runtime_section(work); };
  for (const int flag : {0, FUTEX_PRIVATE_FLAG}) {
    const auto wait = [&](auto&& as) {
      return std::thread([&, as] {
        as([&] { EXPECT_EQ(job.futex(0, word, FUTEX_WAIT | flag, 0), 0); });
      });
    };
    // Asks until somebody is there.
    const auto wake = [&](auto&& as, int node) {
      long woken = 0;
      while (woken == 0) {
        as([&] { woken = job.futex(node, word, FUTEX_WAKE | flag, 1); });
      }
      EXPECT_EQ(woken, 1);
    };
    for (const int node : {0, 1}) {
      if (node == 1 && flag == 0) continue;  // touches its page
      std::thread of_runtime = wait(as_runtime);
      wake(as_program, node);
      of_runtime.join();
    }
    std::thread of_program = wait(as_program);
    wake(as_runtime, 0);
    of_program.join();
  }
}

// The kernel looks at the page of a futex that is not private, as those of C++'s static
// initialisers are. The thread that answers other nodes is the one that would have to bring it.
TEST(Futexes, AWakeUpFromElsewhereTouchesNoPage) {
  Result<os::Userfaultfd> faults = os::Userfaultfd::open();
  if (!faults.ok()) GTEST_SKIP() << faults.error().message;
  void* const page = mmap(nullptr, base::kPageSize, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto begin = reinterpret_cast<std::uintptr_t>(page);
  ASSERT_TRUE(
      faults.value().register_range(begin, base::kPageSize, os::Registration::kAll).ok());
  Job job(2);
  std::atomic<bool> answered{false};
  std::thread other([&] {
    EXPECT_EQ(job.call(1, SYS_futex, {Job::address(page), FUTEX_WAKE, 1, 0}), 0);
    answered.store(true);
  });
  const Nanos until = os::monotonic_now() + 5 * base::kSecond;
  while (!answered.load() && os::monotonic_now() < until) std::this_thread::yield();
  EXPECT_TRUE(answered.load());
  EXPECT_TRUE(faults.value().unregister_range(begin, base::kPageSize).ok());
  other.join();
  munmap(page, base::kPageSize);
}

TEST(Output, StaysOnItsNodeAndIsNoticed) {
  Job job(2);
  EXPECT_EQ(job.outputs_written(1), 0u);
  const iovec nothing{};
  std::uint64_t written = 0;
  for (const std::uint64_t stream : {STDOUT_FILENO, STDERR_FILENO}) {
    EXPECT_EQ(job.call(1, SYS_write, {stream, 0, 0}), 0);
    EXPECT_EQ(job.outputs_written(1), ++written);
    EXPECT_EQ(job.call(1, SYS_writev, {stream, Job::address(&nothing), 1}), 0);
    EXPECT_EQ(job.outputs_written(1), ++written);
  }
  EXPECT_EQ(job.counts(1).descriptor_calls, 0u);
  EXPECT_EQ(job.call(1, SYS_write, {987, 0, 0}), -EBADF);
  EXPECT_EQ(job.outputs_written(1), written);
}

class RemoteFile : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  Job job_{2};
  std::string path_ = testing::TempDir() + "amasia_delegate_" + std::to_string(getpid());
};

TEST_F(RemoteFile, IsWrittenAndReadFromAnotherNode) {
  const long file = job_.call(1, SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD),
                                              Job::address(path_.c_str()), O_RDWR | O_CREAT, 0600});
  ASSERT_GE(file, 0);
  const auto descriptor = static_cast<std::uint64_t>(file);
  std::string text(100000, 'a');
  text += "end";
  EXPECT_EQ(job_.call(1, SYS_write, {descriptor, Job::address(text.data()), text.size()}),
            static_cast<long>(text.size()));
  struct stat status {};
  EXPECT_EQ(job_.call(1, SYS_fstat, {descriptor, Job::address(&status)}), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(text.size()));
  EXPECT_EQ(job_.call(1, SYS_lseek, {descriptor, 0, SEEK_SET}), 0);
  std::string first(99999, ' '), second(10, ' ');
  const iovec vector[2] = {{first.data(), first.size()}, {second.data(), second.size()}};
  EXPECT_EQ(job_.call(1, SYS_readv, {descriptor, Job::address(vector), 2}), 100003);
  EXPECT_EQ(first + second.substr(0, 4), text);
  EXPECT_EQ(job_.call(1, SYS_close, {descriptor}), 0);
  EXPECT_EQ(job_.call(1, SYS_close, {descriptor}), -EBADF);
}

TEST_F(RemoteFile, PathsMeanWhatTheyMeanAtTheOrigin) {
  const std::string other = path_ + "b";
  const auto at = [](const std::string& path) { return Job::address(path.c_str()); };
  EXPECT_EQ(job_.call(1, SYS_mkdir, {at(path_), 0700}), 0);
  EXPECT_EQ(job_.call(1, SYS_access, {at(path_), W_OK}), 0);
  EXPECT_EQ(job_.call(1, SYS_rename, {at(path_), at(other)}), 0);
  EXPECT_EQ(job_.call(1, SYS_access, {at(path_), W_OK}), -ENOENT);
  EXPECT_EQ(job_.call(1, SYS_symlinkat, {at(other), static_cast<std::uint64_t>(AT_FDCWD),
                                         at(path_)}), 0);
  std::string target(other.size() + 5, '.');
  EXPECT_EQ(job_.call(1, SYS_readlink, {at(path_), at(target), target.size()}),
            static_cast<long>(other.size()));
  EXPECT_EQ(target, other + ".....");
  EXPECT_EQ(job_.call(1, SYS_unlink, {at(path_)}), 0);
  EXPECT_EQ(job_.call(1, SYS_rmdir, {at(other)}), 0);
  EXPECT_EQ(job_.call(1, SYS_rename, {0, at(other)}), -EFAULT);
  std::string here(4096, ' ');
  EXPECT_GT(job_.call(1, SYS_getcwd, {at(here), here.size()}), 1);
  EXPECT_EQ(std::string(here.c_str()), std::filesystem::current_path());
  const mode_t before = umask(022);
  EXPECT_EQ(job_.call(1, SYS_umask, {027}), 022);
  EXPECT_EQ(umask(before), 027u);
}

TEST_F(RemoteFile, FailsAsAtTheOrigin) {
  EXPECT_EQ(job_.call(1, SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD),
                                      Job::address("/no/such/file"), O_RDONLY}), -ENOENT);
  char byte = 0;
  EXPECT_EQ(job_.call(1, SYS_read, {987, Job::address(&byte), 1}), -EBADF);
}

TEST_F(RemoteFile, WhatCannotBeCarriedIsRefused) {
  EXPECT_EQ(job_.call(1, SYS_mmap, {0, 4096, 1, 2, 5, 0}), -ENODEV);
  EXPECT_EQ(job_.call(1, SYS_socket, {2, 1, 0}), -EAFNOSUPPORT);
  EXPECT_EQ(job_.call(1, SYS_utimensat, {3, 0, 0, 0}), -EPERM);
  EXPECT_EQ(job_.counts(1).refused_calls, 3u);
}

TEST_F(RemoteFile, EachKindOfRefusalIsSaidOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    job_.call(1, SYS_mmap, {0, 4096, 1, 2, 5, 0});
    job_.call(1, SYS_socket, {2, 1, 0});
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("mmap is possible on node 0 only"), std::string::npos) << log;
  EXPECT_NE(log.find("socket is possible on node 0 only"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

// Nobody polls, so that no answer comes; the deadline ends the wait when it has been told of.
TEST(CallSlots, AWaitThatTakesLongIsSaid) {
  CallSlots slots(NodeId{1}, base::kMillisecond);
  const auto wait = [&slots](const AwaitedCall& awaited) {
    testing::internal::CaptureStderr();
    const std::uint64_t ticket = slots.acquire();
    const Nanos deadline = os::monotonic_now() + 20 * base::kMillisecond;
    EXPECT_FALSE(slots.wait_beyond(ticket, CallSlot::kRegistered, deadline, awaited));
    slots.release(ticket);
    return testing::internal::GetCapturedStderr();
  };
  using Object = AwaitedCall::Object;
  const std::string futex = wait(
      {.object = Object::kFutex, .what = "a wake-up of", .number = 0x7e90, .once = true});
  EXPECT_NE(futex.find("node 1 has waited "), std::string::npos) << futex;
  EXPECT_NE(futex.find(" ms for a wake-up of the futex at 0x7e90\n"), std::string::npos) << futex;
  EXPECT_EQ(std::count(futex.begin(), futex.end(), '\n'), 1);
  const std::string call = wait({.object = Object::kDescriptor, .what = "read", .number = 5});
  EXPECT_NE(call.find("for node 0's answer to read on descriptor 5\n"), std::string::npos) << call;
  const std::string open = wait({.object = Object::kPath, .what = "openat", .path = "/a/b"});
  EXPECT_NE(open.find("for node 0's answer to openat of '/a/b'\n"), std::string::npos) << open;
}

TEST_F(RemoteFile, ABlockedCallDoesNotHoldUpOthers) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  char got = 0;
  std::thread reader([&] {
    EXPECT_EQ(job_.call(1, SYS_read, {static_cast<std::uint64_t>(ends[0]), Job::address(&got), 1}),
              1);
  });
  const char sent = 'x';
  EXPECT_EQ(job_.call(1, SYS_write, {static_cast<std::uint64_t>(ends[1]), Job::address(&sent), 1}),
            1);
  reader.join();
  EXPECT_EQ(got, 'x');
  close(ends[0]);
  close(ends[1]);
}

// A call that waits at the origin takes its time there; what one that does not wait takes is mostly
// its way.
TEST_F(RemoteFile, ACallsTimeAndItsWayAreToldApart) {
  constexpr Nanos kWait = 100 * base::kMillisecond;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  char byte = 'x';
  const CallTimes before = job_.own_call_times(1);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kWait));
    EXPECT_EQ(write(ends[1], &byte, 1), 1);
  });
  const Nanos began = os::monotonic_now();
  const auto input = static_cast<std::uint64_t>(ends[0]);
  EXPECT_EQ(job_.call(1, SYS_read, {input, Job::address(&byte), 1}), 1);
  const Nanos elapsed = os::monotonic_now() - began;
  writer.join();
  const CallTimes waited = job_.own_call_times(1);
  EXPECT_GE(waited.at_origin - before.at_origin, kWait / 5);
  EXPECT_GT(waited.carriage, before.carriage);
  EXPECT_LE(waited.at_origin + waited.carriage - before.at_origin - before.carriage, elapsed);

  constexpr int kCalls = 200;
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(job_.call(1, SYS_lseek, {input, 0, SEEK_CUR}), -ESPIPE);
  }
  const CallTimes after = job_.own_call_times(1);
  EXPECT_GT(after.carriage - waited.carriage, after.at_origin - waited.at_origin);
  EXPECT_EQ(job_.call_times(1).carriage, after.carriage - before.carriage);
  EXPECT_EQ(job_.call_times(1).at_origin, after.at_origin - before.at_origin);
  EXPECT_EQ(job_.call_times(0).carriage, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace amasia::delegate
