// SPDX-License-Identifier: Apache-2.0
#include "os/interrupted_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "os/os.hpp"
#include "os/test_await.hpp"

namespace amasia::os {
namespace {

constexpr int kSignal = SIGUSR2;
constexpr std::size_t kStack = 256 * 1024;

// In memory that a child of fork has, too.
struct Shared {
  std::atomic<int> ready{0};
  std::atomic<int> goes_on{0};
  std::atomic<int> done{0};
  std::uint64_t registers[8] = {};
  unsigned char vectors[2][32] = {};
  double sum = 0;
  std::size_t size = 0;
  alignas(64) std::byte state[16384];
  // The one that goes on: where it came from.
  void* way_back[5] = {};
  alignas(64) std::byte stack[kStack];
};

Shared* make_shared() {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return new (memory) Shared;
}
Shared* shared = nullptr;

// Fills registers with numbers, waits without a call until it may go on, and tells what they are
// then. Ends at way_back, on whatever thread that is.
[[noreturn]] void compute(void*) {
  static const unsigned char kPattern[32] = {1, 2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                             12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                             23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
  double sum = 0;
  for (int i = 1; i <= 100; ++i) sum += 1.0 / i;
  asm volatile(
      "vmovdqu (%[pattern]), %%ymm7\n\t"
      "vmovdqu (%[pattern]), %%ymm15\n\t"
      "movl $1, (%[ready])\n\t"
      "movq $11, %%rax\n\t movq $12, %%rdx\n\t movq $13, %%r8\n\t movq $14, %%r9\n\t"
      "movq $15, %%r10\n\t movq $16, %%r11\n\t movq $17, %%r14\n\t movq $18, %%r15\n\t"
      "1: pause\n\t"
      "cmpl $0, (%[goes_on])\n\t"
      "je 1b\n\t"
      "movq %%rax, 0(%[out])\n\t movq %%rdx, 8(%[out])\n\t movq %%r8, 16(%[out])\n\t"
      "movq %%r9, 24(%[out])\n\t movq %%r10, 32(%[out])\n\t movq %%r11, 40(%[out])\n\t"
      "movq %%r14, 48(%[out])\n\t movq %%r15, 56(%[out])\n\t"
      "vmovdqu %%ymm7, (%[vectors])\n\t"
      "vmovdqu %%ymm15, 32(%[vectors])\n\t"
      "vzeroupper"
      :
      : [pattern] "r"(kPattern), [ready] "r"(&shared->ready), [goes_on] "r"(&shared->goes_on),
        [out] "r"(shared->registers), [vectors] "r"(shared->vectors)
      : "rax", "rdx", "r8", "r9", "r10", "r11", "r14", "r15", "xmm7", "xmm15", "memory", "cc");
  shared->sum = sum;
  shared->done = 1;
  __builtin_longjmp(shared->way_back, 1);
}

std::atomic<int> left{0};

[[noreturn]] void leave(void*) {
  left = 1;
  for (;;) ::pthread_exit(nullptr);
}

alignas(64) std::byte leaving_stack[kStack];

void take(int, siginfo_t*, void* context) {
  const InterruptedThread thread(context);
  shared->size = thread.size();
  thread.keep({shared->state, thread.size()});
  thread.redirect(&leave, nullptr, leaving_stack + kStack);
}

void install(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ASSERT_EQ(::sigaction(kSignal, &action, nullptr), 0);
}

// A thread whose handlers run apart from the stack that it leaves behind.
alignas(64) std::byte handlers_stack[64 * 1024];

[[noreturn]] void call_on_shared_stack(void (*function)(void*)) {
  const stack_t alternate{.ss_sp = handlers_stack, .ss_flags = 0, .ss_size = sizeof handlers_stack};
  EXPECT_EQ(::sigaltstack(&alternate, nullptr), 0);
  asm volatile(
      "movq %0, %%rsp\n\t"
      "xorl %%edi, %%edi\n\t"
      "call *%1"
      :
      : "r"(shared->stack + kStack), "r"(function)
      : "memory");
  __builtin_unreachable();
}

pthread_t start(void* (*body)(void*)) {
  pthread_t thread{};
  EXPECT_EQ(::pthread_create(&thread, nullptr, body, nullptr), 0);
  return thread;
}

class Interrupted : public testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx")) GTEST_SKIP() << "this processor has no AVX";
    shared = make_shared();
    left = 0;
    install(&take);
    thread_ = start([](void*) -> void* { call_on_shared_stack(&compute); });
    await([] { return shared->ready != 0; });
  }
  void interrupt() {
    ASSERT_EQ(::pthread_kill(thread_, kSignal), 0);
    ::pthread_join(thread_, nullptr);
    EXPECT_EQ(left, 1);
  }
  void TearDown() override {
    if (shared != nullptr) ::munmap(std::exchange(shared, nullptr), sizeof *shared);
  }
  static void expect_all() {
    for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(shared->registers[i], 11 + i) << i;
    for (const auto& vector : shared->vectors) {
      for (int i = 0; i < 32; ++i) ASSERT_EQ(vector[i], i + 1);
    }
    EXPECT_NEAR(shared->sum, 5.187377517639621, 1e-15);
    EXPECT_EQ(shared->done, 1);
  }

  pthread_t thread_{};
};

// Returns when the state has come to its end.
void carry_on() {
  if (__builtin_setjmp(shared->way_back) == 0) go_on({shared->state, shared->size});
}

TEST_F(Interrupted, AnotherThreadGoesOnWithAllRegisters) {
  interrupt();
  shared->goes_on = 1;
  std::thread other([] { carry_on(); });
  other.join();
  expect_all();
}

TEST_F(Interrupted, AThreadKeepsItsMaskWhenItGoesOn) {
  interrupt();
  shared->goes_on = 1;
  std::thread other([] {
    sigset_t wanted, found;
    ::sigemptyset(&wanted);
    ::sigaddset(&wanted, SIGURG);
    ::pthread_sigmask(SIG_SETMASK, &wanted, nullptr);
    carry_on();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &found);
    EXPECT_EQ(::sigismember(&found, SIGURG), 1);
    EXPECT_EQ(::sigismember(&found, kSignal), 0);
  });
  other.join();
  expect_all();
}

TEST_F(Interrupted, AnotherProcessGoesOnToo) {
  const pid_t child = ::fork();
  if (child == 0) {
    await([] { return shared->size != 0; });
    shared->goes_on = 1;
    carry_on();
    ::_exit(shared->done == 1 ? 0 : 1);
  }
  interrupt();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_all();
}

// A thread that waits for a page is interrupted, too, and the one that goes on waits for it again.
struct Waiting {
  std::byte* page = nullptr;
  std::uint64_t seen = 0;
};
Waiting waiting;

[[noreturn]] void read_page(void*) {
  shared->ready = 1;
  waiting.seen = *reinterpret_cast<volatile std::uint64_t*>(waiting.page);
  shared->done = 1;
  __builtin_longjmp(shared->way_back, 1);
}

TEST(InterruptedThread, MayWaitForAPage) {
  auto faults = Userfaultfd::open();
  if (!faults.ok()) GTEST_SKIP() << faults.error().message;
  shared = make_shared();
  install(&take);
  left = 0;
  const int file = ::memfd_create("test", 0);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const other = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  *static_cast<std::uint64_t*>(other) = 4711;  // in the file, not in the first mapping
  const auto begin = reinterpret_cast<std::uintptr_t>(page);
  ASSERT_TRUE(faults.value().register_range(begin, 4096, Registration::kPresent).ok());
  waiting = {static_cast<std::byte*>(page), 0};
  const pthread_t thread = start([](void*) -> void* { call_on_shared_stack(&read_page); });
  PageFault fault;
  await([&] { return faults.value().read_faults({&fault, 1}) != 0; });
  ASSERT_EQ(::pthread_kill(thread, kSignal), 0);
  ::pthread_join(thread, nullptr);
  EXPECT_EQ(left, 1);
  std::thread guest([] { carry_on(); });
  await([&] { return faults.value().read_faults({&fault, 1}) != 0; });
  Bytes done = 0;
  ASSERT_EQ(faults.value().map(begin, 4096, Mapping::kWritable, &done), 0);
  guest.join();
  EXPECT_EQ(waiting.seen, 4711U);
  EXPECT_EQ(shared->done, 1);
  ::munmap(page, 4096);
  ::munmap(other, 4096);
  ::close(file);
  ::munmap(shared, sizeof *shared);
}

TEST(InterruptedThread, KnowsItsRegisterSets) {
  EXPECT_EQ(register_sets() & 3, 3U) << "x87 and SSE";
  EXPECT_EQ(register_sets(), register_sets());
}

}  // namespace
}  // namespace amasia::os
