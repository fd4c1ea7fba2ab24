// SPDX-License-Identifier: Apache-2.0
// Each case runs in a forked child, since a filter cannot be taken off again.
#include "os/syscall_trap.hpp"

#include "os/process.hpp"
#include "os/thread.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

namespace amasia::os {
namespace {

constexpr long kMark = 4711;

void answer_with_mark(TrappedCall& call) noexcept { call.result = kMark; }
void answer_with_third_argument(TrappedCall& call) noexcept {
  call.result = static_cast<long>(call.arguments[2]);
}

// Runs `body` in a child and returns its exit code.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

long wake(std::uint64_t address) { return syscall(SYS_futex, address, FUTEX_WAKE, 1, 0, 0, 0); }

TEST(SyscallTrap, CatchesFutexesInItsRangesOnly) {
  EXPECT_EQ(in_child([] {
    void* memory = mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto base = reinterpret_cast<std::uint64_t>(memory);
    // Ranges inside one 4 GiB word, and one that spans several.
    const std::array<AddressRange, 2> ranges{AddressRange{base + 0x1000, base + 0x3000},
                                             AddressRange{0x7e9000000000, 0x7ea000000000}};
    if (!install_syscall_trap({.futex_words = ranges}, answer_with_mark).ok()) return 1;
    if (wake(base) == kMark || wake(base + 0xffc) == kMark) return 2;
    if (wake(base + 0x1000) != kMark || wake(base + 0x2ffc) != kMark) return 3;
    if (wake(base + 0x3000) == kMark) return 4;
    if (wake(0x7e9000000000) != kMark || wake(0x7e9fffffffff) != kMark) return 5;
    if (wake(0x7e95ffff0000) != kMark || wake(0x7e9f00000004) != kMark) return 6;
    // Outside every range: the kernel answers (nobody mapped, nobody waits).
    if (wake(0x7e8ffffffffc) == kMark || wake(0x7ea000000000) == kMark) return 7;
    return 0;
  }), 0);
}

TEST(SyscallTrap, CatchesDescriptorsWithinBoundsAndTheWorkingDirectory) {
  EXPECT_EQ(in_child([] {
    const std::array<DescriptorCall, 3> calls{DescriptorCall{SYS_write, 3, 99},
                                              DescriptorCall{SYS_openat, 3, 99},
                                              DescriptorCall{SYS_mmap, 3, 99}};
    const TrapRules rules{.descriptor_calls = calls};
    if (dup2(1, 100) != 100) return 1;
    if (!install_syscall_trap(rules, answer_with_third_argument).ok()) return 2;
    if (syscall(SYS_write, 3, "", 33) != 33 || syscall(SYS_write, 99, "", 34) != 34) return 3;
    if (write(100, "", 0) != 0 || write(2, "", 0) != 0) return 4;
    if (openat(AT_FDCWD, "/", O_RDONLY) != O_RDONLY) return 5;
    if (mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 6;
    return 0;
  }), 0);
}

// An OpenMP runtime may have started threads before the filter was there.
TEST(SyscallTrap, CatchesCallsOfThreadsThatAreThereAlready) {
  EXPECT_EQ(in_child([] {
    std::atomic<bool> installed{false};
    std::atomic<bool> caught{false};
    std::thread earlier([&] {
      while (!installed.load()) yield_core();
      caught.store(read(99, nullptr, 0) == kMark);
    });
    const std::array<DescriptorCall, 1> calls{DescriptorCall{SYS_read, 99, 99}};
    const bool ok = install_syscall_trap({.descriptor_calls = calls}, answer_with_mark).ok();
    installed.store(true);
    earlier.join();
    return ok && caught.load() ? 0 : 1;
  }), 0);
}

TEST(SyscallTrap, TakesSeveralRulesForOneCall) {
  EXPECT_EQ(in_child([] {
    const std::array<DescriptorCall, 3> calls{DescriptorCall{SYS_read, 0, 0},
                                              DescriptorCall{SYS_read, 3, 99},
                                              DescriptorCall{SYS_read, 200, 299}};
    if (dup2(open("/dev/null", O_RDONLY), 100) != 100) return 1;
    if (!install_syscall_trap({.descriptor_calls = calls}, answer_with_mark).ok()) return 2;
    for (const int caught : {0, 3, 99, 200, 299}) {
      if (read(caught, nullptr, 0) != kMark) return 3;
    }
    return read(100, nullptr, 0) == 0 ? 0 : 4;
  }), 0);
}

TEST(SyscallTrap, ReachesCallsThatTheCLibraryMakesInside) {
  EXPECT_EQ(in_child([] {
    const std::array<DescriptorCall, 1> calls{DescriptorCall{SYS_write, 3, 99}};
    FILE* file = fopen("/dev/null", "w");
    const TrapRules rules{.descriptor_calls = calls};
    const auto full = [](TrappedCall& call) noexcept { call.result = -ENOSPC; };
    if (!install_syscall_trap(rules, full).ok()) return 1;
    fputs("lost", file);
    return fflush(file) == EOF && errno == ENOSPC ? 0 : 2;
  }), 0);
}

TEST(SyscallTrap, LetsUncaughtCallsThrough) {
  EXPECT_EQ(in_child([] {
    const long parent = getppid();
    const std::array<int, 1> calls{SYS_getppid};
    if (!install_syscall_trap({.calls = calls}, answer_with_mark).ok()) return 1;
    return getppid() == kMark && make_uncaught_call(SYS_getppid, {}) == parent ? 0 : 2;
  }), 0);
}

TEST(SyscallTrap, LeavesWhatIsExecutedAlone) {
  EXPECT_EQ(in_child([] {
    randomise_addresses_of_children();
    const std::array<int, 1> calls{SYS_getppid};
    if (!install_syscall_trap({.calls = calls}, answer_with_mark).ok()) return 1;
    // A shell asks for its parent's number at its start.
    return std::system("exit 7") == 7 << 8 ? 0 : 2;
  }), 0);
}

TEST(SyscallTrap, HoldsForThreadsStartedLater) {
  EXPECT_EQ(in_child([] {
    const std::array<int, 1> calls{SYS_getppid};
    if (!install_syscall_trap({.calls = calls}, answer_with_mark).ok()) return 1;
    pthread_t thread;
    void* seen = nullptr;
    pthread_create(&thread, nullptr,
                   [](void*) -> void* { return reinterpret_cast<void*>(syscall(SYS_getppid)); },
                   nullptr);
    pthread_join(thread, &seen);
    return reinterpret_cast<long>(seen) == kMark ? 0 : 2;
  }), 0);
}

}  // namespace
}  // namespace amasia::os
