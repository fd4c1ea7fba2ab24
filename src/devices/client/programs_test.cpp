// SPDX-License-Identifier: Apache-2.0
#include "devices/client/programs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

namespace amasia::devices {
namespace {

constexpr std::size_t kTakes = 2;

// A driver whose kernels all take two arguments, and which gives the others time while it builds.
class Builder final : public Backend {
 public:
  Builder() { devices_.resize(1); }
  std::string_view name() const override { return "builder"; }
  const std::vector<DeviceDescription>& devices() const override { return devices_; }
  std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode&, const std::string& kernel,
                                     std::size_t arguments, Outcome* outcome) override {
    if (kernel.empty()) {
      outcome->failure = Failure::kNoKernel;
      return nullptr;
    }
    std::this_thread::yield();
    ++builds;
    if (arguments == kTakes) return std::make_unique<LoadedKernel>();
    outcome->failure = Failure::kArguments;
    outcome->message = "it takes two";
    return nullptr;
  }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes, void*, Outcome*) override {
    return nullptr;
  }
  void submit(const Work&, Completion&) override {}

  std::atomic<int> builds{0};

 private:
  std::vector<DeviceDescription> devices_;
};

// Several threads want one kernel at once, some with a wrong number of arguments, while a program
// is added: each is told about its own number, and who has the right one gets the kernel.
TEST(Programs, AWrongNumberOfArgumentsIsThatTasksMistake) {
  constexpr int kThreads = 4, kRounds = 500;
  Builder builder;
  const std::vector<DevicePlace> devices = {{&builder, 0, builder.devices().data()}};
  for (int round = 0; round < kRounds; ++round) {
    Programs programs(devices);
    ProgramCode code;
    code.kind = ProgramKind::kSource;
    code.code = "first";
    ASSERT_FALSE(programs.add(code, ""));
    std::barrier together(kThreads + 1);
    std::atomic<int> right{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        together.arrive_and_wait();
        Fault why;
        // The first two are right or wrong by their place, the others by the round.
        const bool fits = i < 2 ? i == 0 : (round >> i & 1) != 0;
        LoadedKernel* const found = programs.find(0, "kernel", fits ? kTakes : 1, &why);
        if (found != nullptr) ++right;
        if (found == nullptr && why.code == MCL_ERR_ARGCOUNT) ++wrong;
        EXPECT_TRUE(found != nullptr || !fits) << why.reason;
      });
    }
    together.arrive_and_wait();
    code.code = "second";
    EXPECT_FALSE(programs.add(code, ""));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right + wrong, kThreads);
    EXPECT_GE(right, 1);
    EXPECT_TRUE(programs.is_known(0, "kernel"));
  }
  EXPECT_GE(builder.builds, kRounds);
}

}  // namespace
}  // namespace amasia::devices
