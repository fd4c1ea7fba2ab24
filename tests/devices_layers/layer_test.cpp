// SPDX-License-Identifier: Apache-2.0
// amasia/devices.hpp against a daemon that the first session starts: host kernels, so that it runs
// anywhere.
#include <amasia/devices.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace {

namespace dev = amasia::devices;

int saxpy(const mcl_host_range* part, void* const* args, uint64_t) {
  const auto* x = static_cast<const float*>(args[0]);
  auto* y = static_cast<float*>(args[1]);
  const float a = *static_cast<const float*>(args[2]);
  for (uint64_t i = part->begin[0]; i < part->end[0]; ++i) y[i] += a * x[i];
  return 0;
}
int add_one(const mcl_host_range* part, void* const* args, uint64_t) {
  auto* x = static_cast<int*>(args[0]);
  for (uint64_t i = part->begin[0]; i < part->end[0]; ++i) ++x[i];
  return 0;
}
int broken(const mcl_host_range*, void* const*, uint64_t) { return 1; }

class Layer : public testing::Test {
 protected:
  Layer() : session_(2) {
    session_.add_host_kernel("saxpy", saxpy);
    session_.add_host_kernel("add_one", add_one);
    session_.add_host_kernel("broken", broken);
  }
  dev::session session_;
};

TEST_F(Layer, RunsAKernelOnSpans) {
  std::vector<float> x(1000), y(1000, 1);
  std::iota(x.begin(), x.end(), 0.0F);
  const dev::future done = dev::submit("saxpy", {x.size()}, dev::in(x), dev::inout(y), 2.0F);
  done.get();
  EXPECT_TRUE(done.ready());
  EXPECT_EQ(done.state(), dev::state::terminated);
  EXPECT_LT(done.device(), dev::all_devices().size());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 1 + 2 * x[i]);
}

TEST_F(Layer, TasksFollowEachOther) {
  std::vector<int> x(64);
  std::vector<dev::future> chain;
  for (int i = 0; i < 50; ++i) {
    dev::task next("add_one", dev::inout(x));
    if (!chain.empty()) next.after({chain.back()});
    chain.push_back(next.priority(i % 3).submit({x.size()}));
  }
  chain.back().get();
  EXPECT_EQ(x, std::vector<int>(64, 50));
}

TEST_F(Layer, ResidentMemoryStaysAndPartsOfItAreArguments) {
  std::vector<int> x(100);
  {
    const dev::resident<int> there{std::span<int>(x)};
    dev::submit("add_one", {100}, there.changed()).get();
    dev::submit("add_one", {10}, there.inout(20, 10)).get();
    dev::submit("add_one", {100}, there.inout()).get();
    EXPECT_THROW(there.in(90, 11), dev::error);
  }
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], i >= 20 && i < 30 ? 3 : 2) << i;
}

TEST_F(Layer, FailuresAreErrorsWithASentence) {
  const dev::future failed = dev::submit("broken", {1});
  failed.wait();
  EXPECT_EQ(failed.state(), dev::state::failed);
  try {
    failed.get();
    FAIL() << "it failed";
  } catch (const dev::error& error) {
    EXPECT_EQ(error.code(), MCL_ERR_EXEC);
    EXPECT_NE(std::string(error.what()), "");
  }
  std::vector<int> x(4);
  dev::task after("add_one", dev::inout(x));
  const dev::future never = after.after({failed}).submit({4});
  never.wait();
  EXPECT_THROW(never.get(), dev::error);
  EXPECT_THROW(dev::submit("no such kernel", {1}), dev::error);
  EXPECT_THROW((dev::session()), dev::error) << "one at a time";
  EXPECT_THROW((dev::range{1, 1, 1, 1}), dev::error);
}

}  // namespace
