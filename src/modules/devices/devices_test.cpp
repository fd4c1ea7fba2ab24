// SPDX-License-Identifier: Apache-2.0
// The module with a daemon of its own: on the host's cores, and on OpenCL's devices where there are
// any.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "amasia/device_tasks.hpp"
#include "support/temporary_folder.hpp"

#ifdef __SANITIZE_THREAD__
// Owners of an exception are counted in the C++ library, which is not instrumented: that the last
// of them comes after what others read of it is not seen.
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

namespace amasia::device_tasks {
namespace {

using devices::in;
using devices::inout;

constexpr const char* kSource = R"(
__kernel void add(__global long* v, long what) { v[get_global_id(0)] += what; }
__kernel void sum(__global const long* a, __global const long* b, __global long* to) {
  const size_t i = get_global_id(0);
  to[i] = a[i] + b[i];
}
)";

int add(const mcl_host_range* range, void* const* args, std::uint64_t) {
  auto* const v = static_cast<long*>(args[0]);
  for (auto i = range->begin[0]; i < range->end[0]; ++i) v[i] += *static_cast<long*>(args[1]);
  return 0;
}
int sum(const mcl_host_range* range, void* const* args, std::uint64_t) {
  const auto *a = static_cast<const long*>(args[0]), *b = static_cast<const long*>(args[1]);
  auto* const to = static_cast<long*>(args[2]);
  for (auto i = range->begin[0]; i < range->end[0]; ++i) to[i] = a[i] + b[i];
  return 0;
}
int fail(const mcl_host_range*, void* const*, std::uint64_t) { return 7; }
// Until a task lets it go on: hangs if the task's worker waits for the kernel.
std::atomic<bool> gate{false};
int wait_at_gate(const mcl_host_range*, void* const*, std::uint64_t) {
  while (!gate.load()) ::usleep(100);
  return 0;
}

// The daemon removes its folder at its end. Where the test is killed with all its children, as at
// the end of its time, nobody would: a process that is no child of ours waits for our end.
void remove_after_us(const std::string& folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();  // nobody closes our end before we end
  const pid_t child = ::fork();
  if (child != 0) {
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    return;
  }
  if (::setsid() < 0 || ::fork() != 0) ::_exit(0);
  for (const int ours : {0, 1, 2, ends[1]}) ::close(ours);
  char none;
  static_cast<void>(::read(ends[0], &none, 1));
  ::unlink((folder + "/devices.sock").c_str());
  ::rmdir(folder.c_str());
  ::_exit(0);
}

class Daemon {
 public:
  Daemon() {
    remove_after_us(folder_.path());
    ::setenv("AMASIA_DEVICES_SOCKET", socket_.c_str(), 1);
    ::setenv("AMASIA_DEVICES_START", "0", 1);
    ::setenv("POCL_DEVICES", "basic", 0);
    start();
  }
  ~Daemon() {
    stop(SIGTERM);
    const std::string& path = folder_.path();
    if (std::filesystem::exists(path)) ADD_FAILURE() << "the daemon leaves " << path;
  }
  void start() {
    // Ends by itself, too: the test may be killed.
    const char* arguments[] = {DEVICED, "--idle-end", "10", nullptr};
    if (::posix_spawn(&process_, DEVICED, nullptr, nullptr, const_cast<char**>(arguments),
                      environ) != 0) {
      std::abort();
    }
    while (!listens()) ::usleep(1000);
  }
  void stop(int signal) {
    ::kill(process_, signal);
    ::waitpid(process_, nullptr, 0);
    ::unlink(socket_.c_str());
  }
 private:
  // The socket's name is there before the daemon listens.
  bool listens() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    const int probe = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    const bool connected = ::connect(probe, to, sizeof address) == 0;
    ::close(probe);
    return connected;
  }
  const tests::TemporaryFolder folder_{"device-tasks"};
  const std::string socket_ = folder_ / "devices.sock";
  pid_t process_ = 0;
};
Daemon* the_daemon = nullptr;
struct WithDaemon : testing::Environment {
  void SetUp() override { the_daemon = new Daemon; }
  void TearDown() override { delete std::exchange(the_daemon, nullptr); }
};
const auto* const kWithDaemon = testing::AddGlobalTestEnvironment(new WithDaemon);

// A file with this text, in memory, that goes with its owner.
class TextFile {
 public:
  explicit TextFile(const std::string& text) : number_(::memfd_create("kernels", MFD_CLOEXEC)) {
    std::ofstream(path()) << text;
  }
  ~TextFile() { ::close(number_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

struct Setting {
  const char* backend;
  unsigned workers;
};

class DeviceTasks : public testing::TestWithParam<Setting> {
 protected:
  // False: there is no such device.
  bool with_library(const std::function<void(library&)>& body) {
    ::setenv("AMASIA_DEVICES_BACKENDS", GetParam().backend, 1);
    tasks::runtime workers({.workers = GetParam().workers});
    library devices(workers);
    if (mcl_get_ndev() == 0) return false;
    workers.run([&] {
      load_kernels(devices);
      body(devices);
    });
    return true;
  }
  static void load_kernels(library& devices) {
    if (on_host()) {
      devices.add_host_kernel("add", add);
      devices.add_host_kernel("sum", sum);
      devices.add_host_kernel("fail", fail);
      devices.add_host_kernel("wait_at_gate", wait_at_gate);
    } else {
      devices.load(TextFile(kSource).path()).get();
    }
  }
  static bool on_host() { return std::string(GetParam().backend) == "host"; }
};
#define WITH_LIBRARY(...) \
  if (!with_library(__VA_ARGS__)) GTEST_SKIP() << "OpenCL has no device here"

INSTANTIATE_TEST_SUITE_P(Settings, DeviceTasks,
                         testing::Values(Setting{"host", 1}, Setting{"host", 3},
                                         Setting{"opencl", 1}, Setting{"opencl", 3}),
                         [](const auto& one) {
                           return one.param.backend + std::to_string(one.param.workers);
                         });

constexpr std::size_t kSize = 1000;

TEST_P(DeviceTasks, KernelsAwaitFuturesOfTasksAndOfKernels) {
  WITH_LIBRARY([](library& devices) {
    std::vector<long> a(kSize), b(kSize), c(kSize);
    const auto filled = tasks::async_future([&] { std::iota(a.begin(), a.end(), 0L); });
    const auto first =
        devices.submit_await(devices::task("add", inout(a), 5L), {kSize}, filled);
    const auto other = devices.run("add", {kSize}, inout(b), 100L);
    const auto both = devices.submit_await(
        devices::task("sum", in(a), in(b), devices::out(c)), {kSize}, first, other);
    const auto total = tasks::async_await_future(
        [&] {
          both.get();
          return std::accumulate(c.begin(), c.end(), 0L);
        },
        both);
    EXPECT_EQ(total.get(), 999 * 1000 / 2 + 105 * 1000);
  });
}

TEST_P(DeviceTasks, FinishWaitsForKernels) {
  WITH_LIBRARY([](library& devices) {
    std::vector<std::vector<long>> all(200, std::vector<long>(64));
    tasks::finish([&] {
      for (auto& one : all) {
        tasks::async([&] {
          const auto first = devices.run("add", {one.size()}, inout(one), 1L);
          devices.submit_await(devices::task("add", inout(one), 2L), {one.size()}, first);
        });
      }
    });
    for (const auto& one : all) EXPECT_EQ(one, std::vector<long>(64, 3));
  });
}

// Random copies and kernels on parts of one buffer, against memory of the host.
TEST_P(DeviceTasks, CopiesAndKernelsOnPartsGiveWhatTheHostHas) {
  WITH_LIBRARY([](library& devices) {
    const auto memory = tasks::here();
    std::mt19937 random(17);
    std::vector<long> model(kSize), piece(kSize);
    tasks::buffer buffer(devices.devices(), kSize * sizeof(long));
    tasks::async_copy(buffer.data(), devices.devices(), model.data(), memory,
                      kSize * sizeof(long)).get();
    for (int round = 0; round < 300; ++round) {
      const std::size_t first = random() % kSize, count = 1 + random() % (kSize - first);
      long* const at = buffer.as<long>() + first;
      const std::size_t bytes = count * sizeof(long);
      if (random() % 3 == 0) {
        for (std::size_t n = 0; n < count; ++n) model[first + n] = static_cast<long>(random());
        tasks::async_copy(at, devices.devices(), model.data() + first, memory, bytes).get();
      } else if (random() % 2 == 0) {
        for (std::size_t n = 0; n < count; ++n) model[first + n] += round;
        devices.run("add", {count}, part<long>(buffer, first, count).inout(), long{round}).get();
      } else {
        tasks::async_copy(piece.data(), memory, at, devices.devices(), bytes).get();
        ASSERT_TRUE(std::equal(piece.begin(), piece.begin() + static_cast<long>(count),
                               model.begin() + static_cast<long>(first)))
            << "round " << round << ", " << count << " from " << first;
      }
    }
    tasks::buffer second(devices.devices(), kSize * sizeof(long));
    tasks::async_copy(second.data(), devices.devices(), buffer.data(), devices.devices(),
                      kSize * sizeof(long)).get();
    tasks::async_copy(piece.data(), memory, second.data(), devices.devices(),
                      kSize * sizeof(long)).get();
    EXPECT_EQ(piece, model);
    EXPECT_THROW((part<long>(buffer, 1, kSize)), error);
    EXPECT_THROW(
        tasks::async_copy(buffer.as<long>() + 1, devices.devices(), piece.data(), memory,
                          kSize * sizeof(long)).get(),
        error);
  });
}

template <typename Body>
error error_of(Body body) {
  try {
    body();
  } catch (const error& failure) {
    return failure;
  }
  return {0, "nothing is thrown"};
}

TEST_P(DeviceTasks, FailuresAreExceptionsWithTheReason) {
  WITH_LIBRARY([](library& devices) {
    std::vector<long> v(4);
    EXPECT_EQ(error_of([&] { devices.run("unknown", {4}, inout(v)).get(); }).code(),
              MCL_ERR_INVKER);
    // Three items in groups of two: known when it is submitted.
    const auto refused = devices.submit(devices::task("add", inout(v), 1L),
                                        devices::range{3}.in_groups_of({2}));
    EXPECT_EQ(error_of([&] { refused.get(); }).code(), MCL_ERR_INVPES);
    const auto after = devices.submit_await(devices::task("add", inout(v), 1L), {4}, refused);
    EXPECT_EQ(error_of([&] { after.get(); }).code(), MCL_ERR_INVPES);
    EXPECT_EQ(v, std::vector<long>(4));
    if (on_host()) {
      const error failed = error_of([&] { devices.run("fail", {1}).get(); });
      EXPECT_EQ(failed.code(), MCL_ERR_EXEC);
      EXPECT_NE(std::string(failed.what()).find("returned 7"), std::string::npos) << failed.what();
    } else {
      const TextFile broken("__kernel void broken() { no_such_thing(); }");
      const error failed = error_of([&] { devices.load(broken.path()).get(); });
      EXPECT_EQ(failed.code(), MCL_ERR_INVPRG);
      EXPECT_NE(std::string(failed.what()).find("no_such_thing"), std::string::npos)
          << failed.what();
    }
    EXPECT_EQ(error_of([&] { devices.load("/nowhere/none.cl").get(); }).code(), MCL_ERR_INVPRG);
  });
}

TEST_P(DeviceTasks, WorkersGoOnWhileKernelsRun) {
  if (!on_host()) GTEST_SKIP() << "what a kernel waits for is on the host";
  WITH_LIBRARY([](library& devices) {
    gate = false;
    tasks::finish([&] {
      devices.run("wait_at_gate", {1});
      tasks::async([] { gate = true; });
    });
  });
}

TEST_P(DeviceTasks, SeveralRuntimesShareTheConnection) {
  ::setenv("AMASIA_DEVICES_BACKENDS", GetParam().backend, 1);
  std::atomic<int> right{0}, without{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 3; ++n) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {  // attached and detached at any time
        tasks::runtime workers({.workers = GetParam().workers});
        library devices(workers);
        if (mcl_get_ndev() == 0) {
          ++without;
          continue;
        }
        workers.run([&] {
          load_kernels(devices);
          std::vector<long> v(kSize);
          tasks::future<void> last = devices.run("add", {kSize}, inout(v), 1L);
          for (int more = 0; more < 20; ++more) {
            last = devices.submit_await(devices::task("add", inout(v), 1L), {kSize}, last);
          }
          last.get();
          right += v == std::vector<long>(kSize, 21);
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (without == 15) GTEST_SKIP() << "OpenCL has no device here";
  EXPECT_EQ(right.load(), 15);
}

// More tasks than the daemon takes at a time: those that it has, and those that wait for it.
TEST_P(DeviceTasks, TheDaemonsDeathEndsAllFutures) {
  constexpr int kTasks = 1500;
  if (!on_host()) GTEST_SKIP() << "what a kernel waits for is on the host";
  WITH_LIBRARY([](library& devices) {
    gate = false;
    std::vector<future<void>> all;
    tasks::finish([&] {
      for (int n = 0; n < kTasks; ++n) all.push_back(devices.run("wait_at_gate", {1}));
      the_daemon->stop(SIGKILL);
      gate = true;
    });
    int lost = 0;
    for (const auto& one : all) {
      ASSERT_TRUE(one.ready());
      const error failed = error_of([&] { one.get(); });
      if (failed.code() == 0) continue;
      EXPECT_EQ(failed.code(), MCL_ERR_SRVCOMM) << failed.what();
      ++lost;
    }
    EXPECT_GT(lost, kTasks - 1100);
    EXPECT_EQ(error_of([&] { devices.run("wait_at_gate", {1}).get(); }).code(), MCL_ERR_SRVCOMM);
    the_daemon->start();
    devices.run("wait_at_gate", {1}).get();  // it is found again
  });
}

}  // namespace
}  // namespace amasia::device_tasks
