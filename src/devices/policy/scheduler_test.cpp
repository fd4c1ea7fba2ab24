// SPDX-License-Identifier: Apache-2.0
// Each part of the framework against a naive account of the same rule, and all combinations of
// parts through random workloads whose every step the virtual node checks.
#include "devices/policy/scheduler.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "devices/policy/virtual_node.hpp"

namespace amasia::devices::policy {
namespace {

using simulation::Outcome;
using simulation::virtual_device;
using simulation::VirtualDevice;
using simulation::VirtualNode;
using simulation::VirtualTask;
using simulation::Workload;

// The tasks of these tests are all brief; only some let devices run ahead with them.
std::unique_ptr<Policy> made(std::string_view name, std::string_view settings = "",
                             bool runs_ahead = false) {
  auto out = make_policy(name, fmt::format("{},ahead-us={}", settings, runs_ahead ? 500 : 0));
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return std::move(out).value();
}

std::vector<std::string> all_combinations() {
  std::vector<std::string> out = {""};
  for (const std::string_view kind : {"order", "placement", "eviction", "fairness"}) {
    std::vector<std::string> longer;
    for (const std::string& before : out) {
      for (const PolicyPart& part : policy_parts()) {
        if (part.kind == kind) longer.push_back(before + "+" + std::string(part.name));
      }
    }
    out = std::move(longer);
  }
  return out;
}

// A depth of 1: one task at a time.
VirtualDevice serial(double speed = 1, DeviceClass device_class = DeviceClass::kCpu) {
  return virtual_device(device_class, speed, 1, 1, 0);
}

// Devices, clients and tasks of all kinds, within what can run.
struct RandomCase {
  std::vector<VirtualDevice> devices;
  Workload work;
};
RandomCase random_case(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint64_t least, std::uint64_t most) {
    return least + random() % (most - least + 1);
  };
  RandomCase out;
  const std::uint64_t devices = pick(1, 8);
  for (std::uint64_t i = 0; i < devices; ++i) {
    const auto device_class = static_cast<DeviceClass>(pick(0, kDeviceClasses - 1));
    out.devices.push_back(virtual_device(
        device_class, static_cast<double>(pick(1, 16)), static_cast<std::uint32_t>(pick(1, 16)),
        static_cast<std::uint32_t>(pick(1, 8)), 1000 * pick(1, 10)));
  }
  const DeviceSet all = (DeviceSet{1} << devices) - 1;
  const std::uint64_t tasks = pick(1, 150);
  for (std::uint64_t i = 0; i < tasks; ++i) {
    VirtualTask task;
    task.client = static_cast<std::uint32_t>(pick(1, 5));
    task.kernel = pick(1, 4);
    task.work = pick(1, 40);
    task.cost_ns = static_cast<double>(pick(1, 100) * pick(1, 10'000));
    task.allowed = pick(0, 2) == 0 ? all & random() : all;
    if (task.allowed == 0) task.allowed = all;
    task.preferred = pick(0, 2) == 0 ? task.allowed & random() : 0;
    task.priority = static_cast<std::int32_t>(pick(0, 6)) - 3;
    task.temporary = pick(0, 1) * pick(1, 300);
    std::set<std::uint64_t> used;
    for (std::uint64_t n = pick(0, 3); n > 0; --n) {
      const std::uint64_t buffer = pick(1, 8);
      if (!used.insert(buffer).second) continue;
      task.resident.push_back(
          {buffer, 30 * buffer, pick(0, 3) == 0 ? Access::kReadWrite : Access::kRead});
    }
    task.at = static_cast<Nanos>(pick(0, 1) * pick(1, 1'000'000));
    out.work.tasks.push_back(std::move(task));
  }
  out.work.weights[1] = 4;
  return out;
}

TEST(Scheduler, KeepsToTheRulesInAllCombinations) {
  std::uint64_t evictions = 0;
  for (const std::string& name : all_combinations()) {
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      const RandomCase random = random_case(seed);
      const bool runs_ahead = seed % 2 == 0;
      const auto policy = made(name, "overtakes=5", runs_ahead);
      VirtualNode node(random.devices, *policy);
      node.runs_ahead = runs_ahead;
      for (int again = 0; again < 2; ++again) {
        const Outcome outcome = node.run(random.work);
        ASSERT_EQ(outcome.violation, "") << name << ", seed " << seed;
        evictions += outcome.evictions;
      }
      const auto& scheduler = dynamic_cast<const Scheduler&>(*policy);
      ASSERT_TRUE(scheduler.ledger().is_valid()) << name << ", seed " << seed;
      ASSERT_EQ(scheduler.queued() + scheduler.in_flight(), 0U);
    }
  }
  EXPECT_GT(evictions, 1000U) << "memory was never short";
}

TEST(Scheduler, KeepsQuotas) {
  for (const std::string name : {"", "one-line", "earliest-finish+turns", "delay+priority"}) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      const RandomCase random = random_case(seed);
      const auto policy = made(name, "quota-tasks=2,quota-memory=1000");
      VirtualNode node(random.devices, *policy);
      node.in_flight_max = 2;
      node.client_bytes_max = 1000;
      ASSERT_EQ(node.run(random.work).violation, "") << name << ", seed " << seed;
    }
  }
}

// Clients that come, put, withdraw, drop and go at any moment; beside it a naive account of what is
// queued and granted.
class ClientStorm {
 public:
  explicit ClientStorm(std::uint32_t seed)
      : random_(seed),
        policy_(made(seed % 2 == 0 ? "" : "hybrid+cost+priority", "", seed % 3 == 0)) {
    for (std::uint16_t i = 0; i < 3; ++i) {
      DeviceDescription device;
      device.memory = 1000;
      device.queue_depth = 3;
      device.compute_units = 4;
      policy_->add_device(DeviceId(i), device);
    }
  }

  // "" or what is wrong.
  std::string step() {
    const ClientId client(static_cast<std::uint32_t>(1 + random_() % 3));
    const std::uint32_t what = random_() % 68;
    if (what >= 64) {
      stop_or_go_on(client);
    } else if (what < 24) {
      put(client);
    } else if (what < 32) {
      finish();
    } else if (what < 40) {
      cancel();
    } else if (what < 48) {
      made_room();
    } else if (what < 63) {
      policy_->drop({client, random_() % 6}, DeviceId(static_cast<std::uint16_t>(random_() % 3)));
    } else {
      remove(client);
    }
    for (Decision now = policy_->next(++now_); !now.nothing(); now = policy_->next(now_)) {
      leaving_.insert(leaving_.end(), now.evictions.begin(), now.evictions.end());
      if (!now.grant) continue;
      if (put_.erase(now.grant->task) != 1) return "a task is granted that is not queued";
      granted_[now.grant->task] = now.grant->device;
    }
    if (!scheduler().ledger().is_valid()) return "the ledger is wrong";
    const std::size_t tasks = scheduler().queued() + scheduler().in_flight();
    return tasks == put_.size() + granted_.size() ? "" : "a task is lost";
  }

  std::string end() {
    while (!clients_.empty()) remove(ClientId(*clients_.begin()));
    if (scheduler().queued() + scheduler().in_flight() != 0) return "tasks are left";
    for (std::uint16_t i = 0; i < 3; ++i) {
      if (scheduler().ledger().device(DeviceId(i)).used != 0) return "memory is left";
    }
    return "";
  }

 private:
  const Scheduler& scheduler() const { return dynamic_cast<const Scheduler&>(*policy_); }
  void put(ClientId client) {
    if (clients_.insert(client.value).second) {
      policy_->add_client(client, 1);
      policy_->limit_memory(client, DeviceId(0), 400 + random_() % 3 * 300);
    }
    TaskDescription task;
    task.key = {client, ++number_};
    task.allowed = ~DeviceSet{0};
    task.temporary = random_() % 400;
    for (std::uint64_t b = 1; b <= random_() % 4; ++b) {
      task.resident.push_back({b + random_() % 3, 150, Access::kReadWrite});
    }
    if (!policy_->can_run(task).ok()) return;
    put_.insert(task.key);
    policy_->put(std::move(task));
  }
  void finish() {
    if (granted_.empty()) return;
    const auto [key, device] = *granted_.begin();
    policy_->finish({key, device, random_() % 2 == 0, 100, 100, 300});
    granted_.erase(key);
  }
  void cancel() {
    if (put_.empty()) return;
    const TaskKey key = *put_.begin();
    policy_->cancel(key);
    put_.erase(key);
  }
  void made_room() {
    if (leaving_.empty()) return;
    policy_->drop(leaving_.back().buffer, leaving_.back().device);
    leaving_.pop_back();
  }
  void stop_or_go_on(ClientId client) {
    if (stopped_.erase(client.value) == 1) {
      policy_->resume(client);
    } else if (clients_.contains(client.value)) {
      policy_->suspend(client);
      stopped_.insert(client.value);
    }
  }
  void remove(ClientId client) {
    policy_->remove_client(client);
    clients_.erase(client.value);
    stopped_.erase(client.value);
    std::erase_if(granted_, [&](const auto& one) { return one.first.client == client; });
    std::erase_if(put_, [&](const TaskKey& key) { return key.client == client; });
    std::erase_if(leaving_, [&](const Eviction& one) { return one.buffer.client == client; });
  }

  std::mt19937 random_;
  std::unique_ptr<Policy> policy_;
  std::map<TaskKey, DeviceId> granted_;
  std::set<TaskKey> put_;
  std::vector<Eviction> leaving_;
  std::set<std::uint32_t> clients_, stopped_;
  std::uint64_t number_ = 0;
  Nanos now_ = 0;
};

// One whose driver gives it less of a device's memory than there is makes room among its own.
TEST(Scheduler, AClientKeepsToTheMemoryThatItsDriverGivesIt) {
  const auto policy = made("");
  DeviceDescription device;
  device.memory = 1000;
  policy->add_device(DeviceId(0), device);
  const ClientId limited(1), other(2);
  policy->add_client(limited, 1);
  policy->add_client(other, 1);
  policy->limit_memory(limited, DeviceId(0), 300);
  policy->limit_memory(other, DeviceId(0), 1000);
  std::uint64_t number = 0;
  const auto run = [&](ClientId client, std::uint64_t buffer) {
    TaskDescription task;
    task.key = {client, ++number};
    task.allowed = 1;
    task.resident = {{buffer, 200, Access::kRead}};
    policy->put(task);
    Decision decision = policy->next(1);
    std::vector<Eviction> evictions = decision.evictions;
    for (const Eviction& one : evictions) policy->drop(one.buffer, one.device);
    if (!evictions.empty()) decision = policy->next(1);
    EXPECT_TRUE(decision.grant.has_value());
    policy->finish({task.key, DeviceId(0)});
    return evictions;
  };
  EXPECT_TRUE(run(other, 1).empty());
  EXPECT_TRUE(run(limited, 1).empty());
  const std::vector<Eviction> evictions = run(limited, 2);
  ASSERT_EQ(evictions.size(), 1U) << "600 of 1000 bytes would be in use";
  EXPECT_EQ(evictions[0].buffer, (BufferKey{limited, 1}));
  TaskDescription large;
  large.key = {limited, ++number};
  large.allowed = 1;
  large.temporary = 400;
  EXPECT_FALSE(policy->can_run(large).ok());
  large.key.client = other;
  EXPECT_TRUE(policy->can_run(large).ok());
}

TEST(Scheduler, SurvivesClientsThatEndAtAnyMoment) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    ClientStorm storm(seed);
    for (int step = 0; step < 400; ++step) {
      ASSERT_EQ(storm.step(), "") << "seed " << seed << ", step " << step;
    }
    ASSERT_EQ(storm.end(), "") << "seed " << seed;
  }
}

TEST(Scheduler, AStoppedClientHoldsMemoryOnlyUntilItGoesOn) {
  const auto policy = made("");
  DeviceDescription device;
  device.memory = 1000;
  device.queue_depth = 2;
  policy->add_device(DeviceId(0), device);
  const auto put = [&](std::uint32_t client, std::uint64_t number, Bytes bytes) {
    TaskDescription task;
    task.key = {ClientId(client), number};
    task.allowed = 1;
    task.temporary = bytes;
    policy->put(std::move(task));
  };
  const auto granted = [&] {
    std::vector<TaskKey> out;
    for (Decision next = policy->next(1); next.grant; next = policy->next(1)) {
      out.push_back(next.grant->task);
    }
    return out;
  };
  const auto key = [](std::uint32_t client, std::uint64_t number) {
    return TaskKey{ClientId(client), number};
  };
  using Keys = std::vector<TaskKey>;
  policy->add_client(ClientId(1), 1);
  policy->add_client(ClientId(2), 1);
  for (std::uint64_t number = 1; number <= 4; ++number) put(1, number, 300);
  ASSERT_EQ(granted(), (Keys{key(1, 1), key(1, 2)}));
  put(2, 1, 300);
  put(2, 2, 300);
  ASSERT_EQ(granted(), Keys{}) << "the device is full";
  policy->suspend(ClientId(1));
  ASSERT_EQ(granted(), Keys{key(2, 1)}) << "there is memory for one more";
  policy->finish({key(2, 1), DeviceId(0)});
  ASSERT_EQ(granted(), Keys{key(2, 2)});
  policy->resume(ClientId(1));
  ASSERT_EQ(granted(), Keys{});
  policy->finish({key(1, 1), DeviceId(0)});
  ASSERT_EQ(granted(), Keys{}) << "two are in flight, as many as it takes";
  policy->finish({key(2, 2), DeviceId(0)});
  ASSERT_EQ(granted(), Keys{key(1, 3)}) << "it has kept its place";
}

TEST(Order, FifoAndFirstFitStartTasksAsTheyCameWhereAllFit) {
  for (const std::string name : {"fifo+one-line", "first-fit+one-line"}) {
    const auto policy = made(name);
    VirtualNode node({serial()}, *policy);
    Workload work;
    for (std::uint32_t i = 0; i < 100; ++i) {
      work.tasks.push_back({.client = i % 7, .kernel = i % 3, .cost_ns = 10.0 + i % 5});
    }
    const Outcome outcome = node.run(work);
    ASSERT_EQ(outcome.violation, "");
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(outcome.grant_order[i], i) << name;
  }
}

// The naive rule, evaluated anew at every grant.
TEST(Order, PriorityWithAgeingIsTheNaiveRule) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto policy = made("priority+one-line", "ageing-ms=0.001");
    VirtualNode node({serial()}, *policy);
    Workload work;
    for (std::uint32_t i = 0; i < 60; ++i) {
      work.tasks.push_back({.cost_ns = static_cast<double>(1 + random() % 2000),
                            .priority = static_cast<std::int32_t>(random() % 9) - 4,
                            .at = static_cast<Nanos>(random() % 20'000)});
    }
    const Outcome outcome = node.run(work);
    ASSERT_EQ(outcome.violation, "");
    for (std::size_t n = 0; n < work.tasks.size(); ++n) {
      const std::uint32_t got = outcome.grant_order[n];
      const Nanos now = outcome.granted[got];
      const auto precedence = [&](std::uint32_t i) {
        return work.tasks[i].priority + static_cast<double>(now - work.tasks[i].at) / 1000;
      };
      for (std::size_t later = n + 1; later < work.tasks.size(); ++later) {
        const std::uint32_t other = outcome.grant_order[later];
        if (work.tasks[other].at > now) continue;
        ASSERT_LE(precedence(other), precedence(got) + 1e-9) << "seed " << seed;
      }
    }
  }
}

// The device has a depth of 4; what takes 20 us is brief, what takes 200 us is not, and what was
// never measured is not.
class RunsAhead : public ::testing::Test {
 protected:
  RunsAhead() { begin(made("", "", true), DeviceClass::kCpu); }
  void begin(std::unique_ptr<Policy> policy, DeviceClass device_class) {
    policy_ = std::move(policy);
    granted_.clear();
    DeviceDescription device;
    device.device_class = device_class;
    device.queue_depth = 4;
    device.compute_units = 2;
    policy_->add_device(DeviceId(0), device);
    for (const std::uint32_t client : {1, 2, 3}) policy_->add_client(ClientId(client), 1);
  }
  // Ends all that runs, after `run_time`; says how many tasks were granted in its place.
  std::size_t turn(Nanos run_time) {
    for (const TaskKey key : std::exchange(granted_, {})) {
      policy_->finish({key, DeviceId(0), true, run_time, 0, run_time + 1000});
    }
    return grant();
  }
  std::size_t grant() {
    for (Decision next = policy_->next(++now_); next.grant; next = policy_->next(++now_)) {
      granted_.push_back(next.grant->task);
      devices_.push_back(next.grant->device);
      EXPECT_TRUE(dynamic_cast<const Scheduler&>(*policy_).ledger().is_valid());
    }
    return granted_.size();
  }
  void put(std::uint64_t kernel, int count, std::uint32_t client = 1, DeviceSet allowed = 1) {
    for (int i = 0; i < count; ++i) {
      TaskDescription task;
      task.key = {ClientId(client), ++number_};
      task.allowed = allowed;
      task.kernel = kernel;
      task.work_items = 2;
      policy_->put(std::move(task));
    }
  }
  std::unique_ptr<Policy> policy_;
  std::vector<TaskKey> granted_;
  std::vector<DeviceId> devices_;  // of all grants ever
  std::uint64_t number_ = 0;
  Nanos now_ = 0;
};

TEST_F(RunsAhead, WithBriefTasksUpToTheirTimeTogether) {
  put(1, 400);
  EXPECT_EQ(grant(), 2U) << "not measured yet: each takes both elements";
  EXPECT_EQ(turn(20'000), 500U / 20) << "500 us of them";
  EXPECT_EQ(turn(20'000), 500U / 20);
  EXPECT_EQ(turn(1'000), std::size_t{kAheadMost}) << "at most so many";
}

TEST_F(RunsAhead, NotWithLongOnes) {
  put(2, 40);
  EXPECT_EQ(grant(), 2U);
  EXPECT_EQ(turn(200'000), 2U);
  put(1, 1);
  while (turn(200'000) == 2U) continue;
  EXPECT_EQ(turn(20'000), 0U);
  // Brief ones are known now. A long one in flight bounds them: who comes next is not held up.
  put(2, 1);
  put(1, 40);
  EXPECT_EQ(grant(), 2U);
}

TEST_F(RunsAhead, OfACpuFurther) {
  const auto in_flight = [&](DeviceClass device_class) {
    begin(std::move(make_policy("", "")).value(), device_class);
    put(3, 100);
    EXPECT_EQ(grant(), 2U);
    return turn(1'000'000);
  };
  EXPECT_EQ(in_flight(DeviceClass::kCpu), 8U) << "8 ms of what takes 1 ms";
  EXPECT_EQ(in_flight(DeviceClass::kAccelerator), 2U) << "1 ms is not brief there";
}

// Kernels of all that is in flight run at once, so that each takes as long as all of them together:
// the device is done with one after the other all the same.
TEST_F(RunsAhead, ByWhatATaskKeepsTheDeviceFor) {
  put(1, 400);
  std::size_t in_flight = grant();
  for (int round = 0; round < 20; ++round) {
    const Nanos began = 1'000'000 * (round + 1);
    Nanos ended = began;
    for (const TaskKey key : std::exchange(granted_, {})) {
      ended += 20'000;
      policy_->finish({key, DeviceId(0), true, ended - began, 0, ended - began, ended});
    }
    in_flight = grant();
    if (in_flight < 500U / 20) continue;
    EXPECT_EQ(in_flight, 500U / 20);
    return;
  }
  ADD_FAILURE() << "only " << in_flight << " are in flight";
}

// What ends right after another one may have run beside many others: it is not brief for that.
TEST_F(RunsAhead, NotWithLongOnesThatEndTogether) {
  put(2, 40);
  EXPECT_EQ(grant(), 2U);
  Nanos ended = 1'000'000'000;
  for (int round = 0; round < 5; ++round) {
    ended += 400'000;
    for (const TaskKey key : std::exchange(granted_, {})) {
      ended += 1'000;
      policy_->finish({key, DeviceId(0), true, 400'000, 0, 400'000, ended});
    }
    EXPECT_EQ(grant(), 2U);
  }
}

// A client that waits for each of its brief tasks does not wait for those of others, too.
TEST_F(RunsAhead, ABriefTaskOfAClientThatHasNoneIsAGuest) {
  for (const bool among_long_ones : {false, true}) {
    begin(made("", "", true), DeviceClass::kAccelerator);
    const auto put_guest = [&](std::uint64_t kernel) {
      put(kernel, 1, 2);
      return grant();
    };
    put(1, 1, 2);
    ASSERT_EQ(grant(), 1U);
    turn(20'000);
    put(among_long_ones ? 2 : 3, 300);
    grant();
    const Nanos takes = among_long_ones ? 200'000 : 1'000;
    const std::size_t all = turn(takes);
    EXPECT_EQ(all, among_long_ones ? 2U : std::size_t{kAheadMost});
    EXPECT_EQ(put_guest(4), all) << "it may be long, as it was not measured";
    policy_->cancel({ClientId(2), number_});
    EXPECT_EQ(put_guest(1), all + 1);
    EXPECT_EQ(put_guest(1), all + 1) << "one at a time";
  }
}

// Nor is it one where another device has room; and what may run on a GPU, too, waits for either.
TEST_F(RunsAhead, NobodyIsAGuestOfACpuThatIsWantedElsewhere) {
  begin(std::move(make_policy("", "")).value(), DeviceClass::kCpu);
  DeviceDescription gpu;
  gpu.device_class = DeviceClass::kGpu;
  gpu.queue_depth = 2;
  gpu.compute_units = 1;
  policy_->add_device(DeviceId(1), gpu);
  constexpr DeviceSet kCpu = 1, kGpu = 2;
  const auto last = [&](std::uint64_t kernel, DeviceSet allowed) {
    put(kernel, 1, 2, allowed);
    const std::size_t before = granted_.size();
    return grant() == before ? DeviceSet{0} : set_of(devices_.back());
  };
  put(2, 20, 1, kCpu);
  for (int round = 0; round < 3; ++round) turn(200'000'000);
  ASSERT_GE(grant(), 2U);
  EXPECT_EQ(last(2, kCpu | kGpu), kGpu) << "it has room";
  policy_->finish({granted_.back(), DeviceId(1), true, 200'000'000, 0, 200'000'000});
  granted_.pop_back();
  put(3, 2, 3, kGpu);
  grant();
  EXPECT_EQ(last(2, kCpu | kGpu), DeviceSet{0}) << "it is long, and may wait for the GPU";
}

// The system shares a CPU's cores, so that one that is long need not wait either.
TEST_F(RunsAhead, OnACpuALongTaskIsAGuestToo) {
  put(1, 300, 1);
  put(2, 20, 3);
  for (int round = 0; round < 5; ++round) turn(200'000);
  ASSERT_GE(grant(), 2U);
  put(4, 2, 2);
  const std::size_t before = granted_.size();
  EXPECT_EQ(grant(), before + 1) << "one at a time";
  EXPECT_EQ(granted_.back().client, ClientId(2));
}

TEST_F(RunsAhead, WhoHadNothingQueuedWaitsForAQuarterOfATurn) {
  for (const bool has_had_much : {false, true}) {
    begin(std::move(make_policy("", "")).value(), DeviceClass::kGpu);
    for (const std::uint32_t client : {1, 2, 3}) {
      put(client, 1, client);
      ASSERT_EQ(grant(), 1U);
      turn(client == 2 && has_had_much ? 50'000'000 : 20'000);
    }
    put(1, 500, 1);
    ASSERT_EQ(grant(), std::size_t{kAheadMost});
    const Nanos began = now_;
    put(3, 500, 3);
    put(2, 1, 2);
    EXPECT_EQ(grant(), std::size_t{kAheadMost}) << "it is not its turn";
    now_ = policy_->ask_again_at();
    EXPECT_NEAR(static_cast<double>(now_ - began), kTurnOnGpu / 4, 100);
    grant();
    ASSERT_GT(granted_.size(), std::size_t{kAheadMost});
    EXPECT_EQ(granted_[kAheadMost].client, ClientId(has_had_much ? 3 : 2));
  }
}

// A task that needs all of the memory, among many that need a tenth.
Outcome large_among_small(const std::string& name, std::size_t& overtaken) {
  const auto policy = made(name, "overtakes=20");
  VirtualNode node({virtual_device(DeviceClass::kGpu, 1, 4, 4, 1000)}, *policy);
  Workload work;
  for (int i = 0; i < 4; ++i) work.tasks.push_back({.cost_ns = 500.0 + 100 * i, .temporary = 100});
  work.tasks.push_back({.cost_ns = 1000, .temporary = 1000});
  for (int i = 0; i < 500; ++i) work.tasks.push_back({.cost_ns = 500, .temporary = 100});
  const Outcome outcome = node.run(work);
  EXPECT_EQ(outcome.violation, "");
  overtaken = 0;
  for (std::size_t i = 5; i < work.tasks.size(); ++i) {
    if (outcome.granted[i] < outcome.granted[4]) ++overtaken;
  }
  return outcome;
}

TEST(Order, FifoDoesNotBlockAtItsHeadAndDoesNotStarveIt) {
  std::size_t overtaken = 0;
  large_among_small("fifo", overtaken);
  EXPECT_GE(overtaken, 15U) << "small ones pass";
  EXPECT_LE(overtaken, 21U) << "but not for ever";
  large_among_small("first-fit", overtaken);
  EXPECT_EQ(overtaken, 500U) << "first fit has no such bound";
}

TEST(Order, AFullClassDoesNotBlockAnother) {
  const auto policy = made("fifo+one-line");
  VirtualNode node({serial(1, DeviceClass::kGpu), serial()}, *policy);
  Workload work;
  for (int i = 0; i < 5000; ++i) work.tasks.push_back({.cost_ns = 1000, .allowed = 1});
  work.tasks.push_back({.cost_ns = 10, .allowed = 2});
  const Outcome outcome = node.run(work);
  ASSERT_EQ(outcome.violation, "");
  EXPECT_EQ(outcome.granted.back(), 0);
}

TEST(Placement, TwoLevelBalancesClassesThenDevices) {
  // Room for all: 1 CPU, 3 GPUs, 2 others.
  std::vector<VirtualDevice> devices;
  const auto add = [&](DeviceClass device_class, int count) {
    for (int i = 0; i < count; ++i) {
      devices.push_back(virtual_device(device_class, 1, 1000, 1000, 0));
    }
  };
  add(DeviceClass::kCpu, 1);
  add(DeviceClass::kGpu, 3);
  add(DeviceClass::kAccelerator, 2);
  const auto policy = made("two-level+one-line");
  VirtualNode node(devices, *policy);
  Workload work;
  for (int i = 0; i < 36; ++i) work.tasks.push_back({.cost_ns = 1e6});
  const Outcome outcome = node.run(work);
  ASSERT_EQ(outcome.violation, "");
  std::vector<int> count(devices.size());
  for (const std::uint32_t device : outcome.device) ++count[device];
  EXPECT_EQ(count, (std::vector<int>{12, 4, 4, 4, 6, 6}));
}

TEST(Placement, HonoursStrictAndSoftClasses) {
  for (const PolicyPart& part : policy_parts()) {
    if (part.kind != "placement") continue;
    const auto policy = made(part.name);
    VirtualNode node({serial(), virtual_device(DeviceClass::kGpu, 1, 1, 2, 0)}, *policy);
    Workload work;
    for (int i = 0; i < 10; ++i) work.tasks.push_back({.cost_ns = 1000, .allowed = 1});
    work.tasks.push_back({.client = 1, .cost_ns = 1000, .preferred = 2});
    work.tasks.push_back({.client = 1, .cost_ns = 1000, .preferred = 2});
    work.tasks.push_back({.client = 1, .cost_ns = 1000, .preferred = 2});
    const Outcome outcome = node.run(work);
    ASSERT_EQ(outcome.violation, "") << part.name;
    // The GPU takes two at a time; the third takes it or the CPU, whichever has room first.
    EXPECT_EQ(outcome.device[10], 1U) << part.name;
    EXPECT_EQ(outcome.device[11], 1U) << part.name;
  }
}

TEST(Placement, DelayWaitsForDataAsLongAsItsCopyWouldTake) {
  for (const bool longer : {false, true}) {
    const auto policy = made("delay");
    VirtualDevice first = serial(), second = serial();
    VirtualNode node({first, second}, *policy);
    Workload warm;
    const Bytes size = 1'000'000;  // 100 us on the link, and 10
    warm.tasks.push_back({.client = 1, .cost_ns = 10, .resident = {{1, size, Access::kRead}}});
    const Outcome there = node.run(warm);
    ASSERT_EQ(there.violation, "");
    // Another client's task holds the device for less, or more, than the copy takes.
    Workload work;
    work.tasks.push_back(
        {.client = 2,
         .cost_ns = longer ? 500e3 : 50e3,
         .allowed = set_of(DeviceId(static_cast<std::uint16_t>(there.device[0])))});
    work.tasks.push_back(
        {.client = 1, .cost_ns = 10, .resident = {{1, size, Access::kRead}}, .at = 1000});
    const Outcome outcome = node.run(work);
    ASSERT_EQ(outcome.violation, "");
    EXPECT_EQ(outcome.device[1] == there.device[0], !longer);
    EXPECT_EQ(outcome.granted[1], longer ? 1000 + 110'000 : 50'000);
  }
}

TEST(Fairness, DeviceTimeFollowsWeights) {
  for (const std::string placement : {"two-level", "earliest-finish"}) {
    const auto policy = made(placement + "+fair");
    VirtualNode node({serial(), serial(2)}, *policy);
    Workload work;
    work.weights[2] = 3;
    // Unlike sizes: counting tasks would not do.
    for (int i = 0; i < 4000; ++i) {
      work.tasks.push_back({.client = 1, .kernel = 1, .cost_ns = 1000});
      work.tasks.push_back({.client = 2, .kernel = 2, .cost_ns = 3700});
    }
    const Outcome outcome = node.run(work);
    ASSERT_EQ(outcome.violation, "");
    double got[3] = {};
    const Nanos until = outcome.makespan / 4;
    for (std::size_t i = 0; i < work.tasks.size(); ++i) {
      if (outcome.ended[i] > until) continue;
      const double speed = outcome.device[i] == 0 ? 1 : 2;
      got[work.tasks[i].client] += work.tasks[i].cost_ns / speed;
    }
    EXPECT_NEAR(got[2] / got[1], 3, 0.05) << placement;
  }
}

TEST(Fairness, OneClientsLongLineDoesNotDelayAnother) {
  for (const std::string name : {"fair", "turns", "one-line"}) {
    const auto policy = made(name);
    VirtualNode node({serial()}, *policy);
    Workload work;
    for (int i = 0; i < 3000; ++i) work.tasks.push_back({.client = 1, .cost_ns = 1000});
    work.tasks.push_back({.client = 2, .cost_ns = 1000, .at = 500'500});
    const Outcome outcome = node.run(work);
    ASSERT_EQ(outcome.violation, "");
    if (name == "one-line") {
      EXPECT_EQ(outcome.granted.back(), 3'000'000);
    } else {
      EXPECT_EQ(outcome.granted.back(), 501'000) << name << ": as soon as the device is free";
    }
  }
}

// Who keeps a GPU with tasks that are bound by copies takes as much of it as who computes all the
// time.
TEST(Fairness, ATurnOnAGpuCountsByTheClock) {
  const auto policy = std::move(make_policy("", "")).value();
  VirtualDevice gpu = virtual_device(DeviceClass::kGpu, 1, 1, 16, 0);
  gpu.switch_ns = 50'000;
  gpu.copy_latency = 5'000;
  VirtualNode node({gpu}, *policy);
  node.runs_ahead = true;
  Workload work;
  for (int i = 0; i < 8000; ++i) {
    work.tasks.push_back({.client = 1, .kernel = 1, .work = 64, .cost_ns = 10'000, .temporary = 8});
    if (i % 50 != 0) continue;
    work.tasks.push_back({.client = 2, .kernel = 2, .work = 4096, .cost_ns = 250'000});
  }
  const Outcome outcome = node.run(work);
  ASSERT_EQ(outcome.violation, "");
  // The first one's 40 ms of copies and the second one's 40 ms of kernels end together.
  Nanos last[3] = {};
  for (std::size_t i = 0; i < work.tasks.size(); ++i) {
    Nanos& its = last[work.tasks[i].client];
    its = std::max(its, outcome.ended[i]);
  }
  EXPECT_GT(last[1], outcome.makespan * 4 / 5);
  EXPECT_GT(last[2], outcome.makespan * 4 / 5);
}

TEST(Policy, NamesAndSettingsAreRefusedWithASentence) {
  const auto wrong = make_policy("fifo+quickest", "");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message,
            "'quickest' is not a policy; there are: order fifo, first-fit, priority; placement "
            "two-level, delay, hybrid, earliest-finish, first-device; eviction lru, cost; fairness "
            "fair, turns, one-line");
  const auto setting = make_policy("", "quota-tasks=0");
  ASSERT_FALSE(setting.ok());
  EXPECT_EQ(setting.error().message,
            "quota-tasks=0: it takes a number (tasks of a client in flight) of 1 to 1000000000");
  const auto unknown = make_policy("", "speed=1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message,
            "'speed' is not a setting of policies; there are: ageing-ms, overtakes, ahead-us, "
            "turn-us, quota-tasks, quota-memory");
  EXPECT_EQ(made("cost,priority")->name(), "priority+two-level+cost+fair");
}

TEST(Policy, WhatCanNeverRunIsRefusedWithASentence) {
  const auto policy = made("", "quota-memory=1M");
  DeviceDescription device;
  device.memory = 4 * base::kMiB;
  policy->add_device(DeviceId(0), device);
  policy->add_client(ClientId(1), 1);
  TaskDescription task;
  task.key = {ClientId(1), 1};
  EXPECT_EQ(policy->can_run(task).error().message,
            "no device of the classes asked for can run the task");
  task.allowed = 1;
  EXPECT_TRUE(policy->can_run(task).ok());
  task.temporary = 5 * base::kMiB;
  EXPECT_EQ(policy->can_run(task).error().message,
            "the task needs 5120.0 KiB; the largest device that it may run on has 4096.0 KiB");
  task.temporary = 2 * base::kMiB;
  EXPECT_EQ(policy->can_run(task).error().message,
            "the task needs 2048.0 KiB on a device; the daemon grants a client 1024.0 KiB");
  EXPECT_EQ(policy->can_run(task).error().code, EDQUOT);
  task.resident = {{1, UINT64_MAX, Access::kRead}, {2, UINT64_MAX, Access::kRead}};
  EXPECT_FALSE(policy->can_run(task).ok()) << "sizes that clients make up do not wrap";
}

}  // namespace
}  // namespace amasia::devices::policy
