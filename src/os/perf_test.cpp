// SPDX-License-Identifier: Apache-2.0
#include "os/perf.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <thread>

#include "os/clock.hpp"

namespace amasia::os {
namespace {

constexpr std::size_t kPage = 4096;
// What every kernel with performance events counts, also where a processor shows no counters.
// Only the first is looked at: of the kernel's own events the others lag behind until a tick.
constexpr std::array kByKernel = {PerfEvent::kPageFaults, PerfEvent::kTaskClock};

void touch_new_pages(std::size_t count) {
  void* const memory = ::mmap(nullptr, count * kPage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, count * kPage, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < count; ++i) static_cast<volatile char*>(memory)[i * kPage] = 1;
  ::munmap(memory, count * kPage);
}

void compute(Nanos cpu_time) {
  for (const Nanos begin = own_cpu_time(); own_cpu_time() - begin < cpu_time;) {
  }
}

TEST(PerfReadings, AreStretchedToTheWholeTime) {
  const PerfReading before{1000, 500, {10, 200}}, after{3000, 1000, {20, 600}};
  const auto counted = counted_between(before, after);
  ASSERT_TRUE(counted.has_value());
  EXPECT_DOUBLE_EQ((*counted)[0], 40);    // 10 in a quarter of the time
  EXPECT_DOUBLE_EQ((*counted)[1], 1600);  // 400 in it
  EXPECT_DOUBLE_EQ((*counted)[2], 0);
}

TEST(PerfReadings, WithoutTimeOrOutOfOrderTellNothing) {
  const PerfReading some{1000, 500, {10}};
  EXPECT_EQ(counted_between(some, some), std::nullopt);
  EXPECT_EQ(counted_between({3000, 1000, {20}}, some), std::nullopt);
  EXPECT_EQ(counted_between(some, {2000, 600, {9}}), std::nullopt);
  EXPECT_EQ(counted_between(some, {900, 600, {11}}), std::nullopt);
}

TEST(PerfRefusals, SayWhatToDo) {
  const auto said = [](int error, const char* paranoid) {
    return perf_refusal(PerfEvent::kCacheMisses, error, paranoid);
  };
  EXPECT_NE(said(EACCES, "3").find("kernel.perf_event_paranoid is 3"), std::string::npos);
  EXPECT_NE(said(EACCES, "3").find("sysctl -w kernel.perf_event_paranoid=2"), std::string::npos);
  EXPECT_NE(said(EPERM, "2").find("seccomp"), std::string::npos);
  EXPECT_NE(said(EPERM, "").find("not there"), std::string::npos);
  EXPECT_NE(said(ENOENT, "2").find("virtual machine"), std::string::npos);
  EXPECT_NE(said(EOPNOTSUPP, "2").find("'cache-misses'"), std::string::npos);
  EXPECT_NE(said(ENOSYS, "").find("CONFIG_PERF_EVENTS"), std::string::npos);
  EXPECT_NE(said(EMFILE, "2").find("Too many open files"), std::string::npos);
  for (std::size_t i = 0; i < kPerfEvents; ++i) {
    EXPECT_STRNE(name_of(static_cast<PerfEvent>(i)), "");
  }
}

TEST(PerfGroup, CountsWhatTheThreadDoesAndNothingElse) {
  auto opened = PerfGroup::open(kByKernel);
  if (!opened.ok()) GTEST_SKIP() << opened.error().message;
  const PerfGroup group = std::move(opened).value();
  PerfReading before, between, after;
  ASSERT_TRUE(group.read(before));
  std::thread([] {
    touch_new_pages(500);
    compute(5 * base::kMillisecond);
  }).join();
  ASSERT_TRUE(group.read(between));
  touch_new_pages(300);
  compute(2 * base::kMillisecond);
  ASSERT_TRUE(group.read(after));
  const auto others = counted_between(before, between), own = counted_between(between, after);
  ASSERT_TRUE(others.has_value() && own.has_value());
  EXPECT_LT((*others)[0], 300) << "faults of another thread";
  EXPECT_GE((*own)[0], 300);
  EXPECT_LT((*own)[0], 400);
}

TEST(PerfGroup, LeavesLowDescriptorsToTheProgram) {
  auto opened = PerfGroup::open(kByKernel, 100);
  if (!opened.ok()) GTEST_SKIP() << opened.error().message;
  const PerfGroup group = std::move(opened).value();
  const Descriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_LT(next.get(), 100);
  PerfReading reading;
  EXPECT_TRUE(group.read(reading)) << "a moved descriptor still leads its group";
}

// Where the processor shows its counters they count; else the sentence says so.
TEST(PerfGroup, OfTheProcessorCountsInstructionsOrSaysWhyNot) {
  constexpr std::array kEvents = {PerfEvent::kCycles, PerfEvent::kInstructions,
                                  PerfEvent::kCacheMisses};
  auto opened = PerfGroup::open(kEvents);
  if (!opened.ok()) {
    EXPECT_NE(opened.error().code, 0);
    EXPECT_NE(opened.error().message.find("cannot be counted"), std::string::npos);
    GTEST_SKIP() << opened.error().message;
  }
  const PerfGroup group = std::move(opened).value();
  PerfReading before, after;
  ASSERT_TRUE(group.read(before));
  volatile std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 5'000'000; ++i) sum = sum + i;
  ASSERT_TRUE(group.read(after));
  const auto counted = counted_between(before, after);
  ASSERT_TRUE(counted.has_value());
  EXPECT_GE((*counted)[1], 5e6) << "an instruction a round at least";
  EXPECT_LT((*counted)[2], (*counted)[1]);
}

}  // namespace
}  // namespace amasia::os
