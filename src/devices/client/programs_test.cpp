// SPDX-License-Identifier: Apache-2.0
#include "devices/client/programs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <utility>

namespace amasia::devices {
namespace {

constexpr std::size_t kTakes = 2;

class Pair final : public LoadedKernel {
 public:
  Outcome refuses(std::size_t count) const override {
    Outcome outcome;
    if (count != kTakes) outcome.failure = Failure::kArguments;
    return outcome;
  }
  Outcome refuses(std::span<const ArgumentShape> shapes) const override {
    ++looks;
    Outcome outcome = refuses(shapes.size());
    if (outcome.failure == Failure::kNone && shapes[1].size != 4) {
      outcome.failure = Failure::kArguments;
      outcome.message = "the second takes 4 bytes";
    }
    return outcome;
  }
  static inline std::atomic<int> looks{0};
};

// A driver whose kernels all take two arguments, and which gives the others time while it builds.
class Builder : public Backend {
 public:
  Builder() { devices_.resize(1); }
  std::string_view name() const override { return "builder"; }
  const std::vector<DeviceDescription>& devices() const override { return devices_; }
  std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode& code,
                                     const std::string& kernel, std::size_t arguments,
                                     Outcome* outcome) override {
    if (kernel.empty()) {
      outcome->failure = Failure::kNoKernel;
      return nullptr;
    }
    std::this_thread::yield();
    ++builds;
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    if (kernel == "elsewhere" && code.code != "elsewhere") {
      outcome->failure = Failure::kNoKernel;
      return nullptr;
    }
    if (arguments == kTakes) return std::make_unique<Pair>();
    outcome->failure = Failure::kArguments;
    outcome->message = "it takes two";
    return nullptr;
  }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes, void*, Outcome*) override {
    return nullptr;
  }
  void submit(const Work&, Completion&) override {}

  ProgramKinds takes(LocalDevice) const override {
    return ~(takes_functions ? 0 : set_of(ProgramKind::kHostFunction));
  }

  std::atomic<int> builds{0};
  bool takes_functions = true;
  std::function<void()> meanwhile;  // the next time that it builds

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

// A program is loaded, and the first that builds gives another thread the time to add one.
class WhileOneBuilds : public testing::Test {
 protected:
  WhileOneBuilds() { add("first", ""); }
  void add(const char* text, const char* function) {
    ProgramCode code;
    code.kind = ProgramKind::kSource;
    code.code = text;
    EXPECT_FALSE(programs_.add(code, function));
  }
  void expect_to_find_what_comes_meanwhile(const char* function) {
    builder_.meanwhile = [this, function] { add("elsewhere", function); };
    Fault why;
    EXPECT_NE(programs_.find(0, "elsewhere", kTakes, &why), nullptr) << why.reason;
  }

  Builder builder_;
  const std::vector<DevicePlace> devices_ = {{&builder_, 0, builder_.devices().data()}};
  Programs programs_{devices_};
};

TEST_F(WhileOneBuilds, WhatIsAddedIsFound) { expect_to_find_what_comes_meanwhile(""); }

// The function that was to be asked next is gone by the time.
TEST_F(WhileOneBuilds, AFunctionIsReplaced) {
  add("the old one", "elsewhere");
  expect_to_find_what_comes_meanwhile("elsewhere");
}

TEST(Programs, WrongArgumentsAreToldBeforeATaskRuns) {
  Builder builder;
  const std::vector<DevicePlace> devices = {{&builder, 0, builder.devices().data()}};
  Programs programs(devices);
  EXPECT_EQ(programs.check("kernel", kTakes).code, MCL_ERR_INVKER);
  ProgramCode code;
  code.kind = ProgramKind::kSource;
  ASSERT_FALSE(programs.add(code, ""));
  // The number, also after the kernel was loaded with the right one, by which it is not spoilt.
  EXPECT_EQ(programs.check("kernel", 1).code, MCL_ERR_ARGCOUNT);
  EXPECT_EQ(programs.check("kernel", kTakes).code, 0);
  EXPECT_EQ(programs.check("kernel", 3).code, MCL_ERR_ARGCOUNT);
  using Kind = ArgumentKind;
  const ArgumentShape right[] = {{Kind::kBuffer, 0}, {Kind::kValue, 4}};
  const ArgumentShape wide[] = {{Kind::kBuffer, 0}, {Kind::kValue, 8}};
  EXPECT_EQ(programs.check("kernel", wide).code, MCL_ERR_ARGSIZE);
  EXPECT_EQ(programs.check("kernel", right).code, 0);
  const int looks = Pair::looks;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(programs.check("kernel", right).code, 0);
  EXPECT_EQ(Pair::looks, looks) << "what was accepted is looked at again";
  EXPECT_EQ(programs.check("kernel", wide).code, MCL_ERR_ARGSIZE);
  EXPECT_EQ(programs.check("elsewhere", right).code, MCL_ERR_INVKER);
}

// A kernel that the program has for one of the devices only, as by the preprocessor.
TEST(Programs, ThatOneDeviceLacksAKernelSaysNothingOfOthers) {
  class Other final : public Builder {
    std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode&, const std::string&,
                                       std::size_t, Outcome*) override {
      return std::make_unique<Pair>();
    }
  };
  Builder builder;
  Other other;
  const std::vector<DevicePlace> devices = {{&builder, 0, builder.devices().data()},
                                            {&other, 0, other.devices().data()}};
  Programs programs(devices);
  ProgramCode code;
  code.kind = ProgramKind::kSource;
  ASSERT_FALSE(programs.add(code, ""));
  EXPECT_EQ(programs.check("elsewhere", kTakes).code, 0);
  Fault why;
  EXPECT_EQ(programs.devices_for("elsewhere", &why), DeviceSet{2});
  EXPECT_EQ(programs.devices_for("kernel", &why), DeviceSet{3});
}

// A program of OpenCL C and a function of the host's: a kernel that the one has is not looked for
// on devices of the other.
TEST(Programs, AKernelIsLeftToTheBackEndThatHasIt) {
  Builder several, host;
  const DeviceDescription any;
  const std::vector<DevicePlace> devices = {
      {&several, 0, &any}, {&several, 1, &any}, {&several, 2, &any}, {&host, 0, &any}};
  Programs programs(devices);
  ProgramCode code;
  code.kind = ProgramKind::kSource;
  code.code = "has all kernels but that";
  ASSERT_FALSE(programs.add(code, ""));
  Fault why;
  EXPECT_EQ(programs.check("elsewhere", kTakes).code, MCL_ERR_INVKER) << "all were asked";
  code.code = "nor has that one";
  ASSERT_FALSE(programs.add(code, ""));
  several.takes_functions = false;
  code.kind = ProgramKind::kHostFunction;
  code.code = "elsewhere";
  ASSERT_FALSE(programs.add(code, "elsewhere"));
  EXPECT_EQ(programs.check("elsewhere", kTakes).code, 0);
  EXPECT_EQ(programs.devices_for("elsewhere", &why), DeviceSet{0b1000});
  EXPECT_EQ(programs.devices_for("kernel", &why), DeviceSet{0b1111});
}

}  // namespace
}  // namespace amasia::devices
