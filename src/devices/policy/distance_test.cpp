// SPDX-License-Identifier: Apache-2.0
// How far policies are from the best there is: on small cases from what trying everything finds, on
// larger ones in virtual time from a bound that nothing can beat. The distances are printed, and
// pinned on both sides: one that grows is a loss, one that shrinks wants a new pin.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "devices/policy/virtual_node.hpp"

namespace amasia::devices::policy {
namespace {

using simulation::Outcome;
using simulation::virtual_device;
using simulation::VirtualDevice;
using simulation::VirtualNode;
using simulation::VirtualTask;
using simulation::Workload;

struct Distance {
  double mean = 0, worst = 0;
};
void expect_pinned(const std::string& what, const Distance& found, const Distance& pinned) {
  std::printf("%-64s %.3f of the optimum, %.3f at worst\n", what.c_str(), found.mean, found.worst);
  EXPECT_NEAR(found.mean, pinned.mean, 0.002) << what;
  EXPECT_NEAR(found.worst, pinned.worst, 0.002) << what;
}

class Distances {
 public:
  void add(double ratio) {
    sum_ += ratio;
    worst_ = std::max(worst_, ratio);
    ++count_;
  }
  Distance get() const { return {sum_ / count_, worst_}; }

 private:
  double sum_ = 0, worst_ = 0;
  int count_ = 0;
};

std::unique_ptr<Policy> made(const std::string& name) {
  // In the depth that the bounds are computed for, on devices that two clients share at no cost.
  auto out = make_policy(name, "ahead-us=0,turn-us=0");
  EXPECT_TRUE(out.ok());
  return std::move(out).value();
}

// ---- placement against all assignments ----

// Devices that run one task after the other, so that only the assignment matters: a device needs
// its tasks' times, and one copy of each buffer that they read.
double best_assignment(const std::vector<VirtualDevice>& devices, const Workload& work) {
  const std::size_t m = devices.size(), n = work.tasks.size();
  double best = 1e300;
  std::vector<std::size_t> where(n);
  for (;;) {
    double longest = 0;
    for (std::size_t d = 0; d < m; ++d) {
      double load = 0;
      std::set<std::uint64_t> there;
      for (std::size_t i = 0; i < n; ++i) {
        if (where[i] != d) continue;
        const VirtualTask& task = work.tasks[i];
        const double affinity = work.affinity ? work.affinity(task.kernel, d) : 1;
        load += task.cost_ns / (devices[d].speed * affinity);
        Bytes bytes = task.temporary;
        for (const TaskArgument& argument : task.resident) {
          if (there.insert(argument.buffer).second) bytes += argument.size;
        }
        if (bytes == 0) continue;
        load += static_cast<double>(devices[d].copy_latency) +
                static_cast<double>(bytes) / devices[d].bytes_per_s * 1e9;
      }
      longest = std::max(longest, load);
    }
    best = std::min(best, longest);
    std::size_t i = 0;
    while (i < n && ++where[i] == m) where[i++] = 0;
    if (i == n) return best;
  }
}

struct SmallCase {
  std::vector<VirtualDevice> devices;
  Workload work;
};
// Two or three devices of unlike speed that suit kernels differently; `buffers`: tasks read some.
SmallCase small_case(std::uint32_t seed, bool buffers) {
  std::mt19937 random(seed);
  SmallCase out;
  const std::size_t m = 2 + random() % 2;
  for (std::size_t d = 0; d < m; ++d) {
    out.devices.push_back(
        virtual_device(d == 0 ? DeviceClass::kCpu : DeviceClass::kGpu, 1 + random() % 8, 1, 1, 0));
  }
  const std::size_t n = 4 + random() % 5;
  for (std::size_t i = 0; i < n; ++i) {
    VirtualTask task;
    task.client = 1 + random() % 2;
    task.kernel = 1 + random() % 3;
    task.cost_ns = 1000.0 * static_cast<double>(task.kernel * (1 + random() % 100));
    task.work = static_cast<std::uint64_t>(task.cost_ns);
    // A buffer belongs to a client: numbers that no two share, so that the optimum need not care.
    if (buffers) {
      const std::uint64_t buffer = task.client * 10 + random() % 2;
      task.resident = {{buffer, 100'000 * (buffer % 10 + 1), Access::kRead}};
    }
    out.work.tasks.push_back(task);
  }
  std::array<double, 16> factors;
  for (double& factor : factors) factor = 1 + static_cast<double>(random() % 3);
  out.work.affinity = [factors](std::uint64_t kernel, std::size_t device) {
    return factors[kernel * 4 % 16 + device % 4];
  };
  return out;
}

// Placed when times are known: the workload ran before. Buffers are new to the devices.
Distance from_best_assignment(const std::string& name, bool buffers) {
  Distances distances;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SmallCase small = small_case(seed, buffers);
    const auto policy = made(name);
    VirtualNode node(small.devices, *policy);
    for (int warm = 0; warm < 6; ++warm) {
      Workload before = small.work;
      for (VirtualTask& task : before.tasks) {
        for (TaskArgument& argument : task.resident) argument.buffer += 100 * (1U + warm);
      }
      const Outcome learnt = node.run(before);
      EXPECT_EQ(learnt.violation, "");
    }
    const Outcome outcome = node.run(small.work);
    EXPECT_EQ(outcome.violation, "");
    const double best = best_assignment(small.devices, small.work);
    EXPECT_GE(static_cast<double>(outcome.makespan), best - 100) << "nothing beats the oracle";
    distances.add(static_cast<double>(outcome.makespan) / best);
  }
  return distances.get();
}

TEST(Distance, PlacementsFromTheBestAssignment) {
  const auto pin = [](const std::string& name, bool buffers, Distance pinned) {
    expect_pinned(name + (buffers ? ", small cases with buffers" : ", small cases"),
                  from_best_assignment(name, buffers), pinned);
  };
  pin("first-device", false, {2.032, 7.500});
  pin("two-level", false, {1.951, 9.070});
  pin("earliest-finish", false, {1.165, 2.559});
  pin("two-level", true, {1.511, 3.771});
  pin("delay", true, {1.429, 3.803});
  pin("hybrid", true, {1.429, 3.803});
  pin("earliest-finish", true, {1.239, 2.492});
}

// ---- eviction against the optimum of someone who knows the future ----

struct Requests {
  Bytes memory = 0;
  std::vector<Bytes> size;            // of each buffer
  std::vector<std::size_t> sequence;  // of buffers
};
Requests requests(std::uint32_t seed) {
  std::mt19937 random(seed);
  Requests out;
  const std::size_t buffers = 4 + random() % 4;
  for (std::size_t i = 0; i < buffers; ++i) out.size.push_back(10'000 * (1 + random() % 6));
  out.memory = 60'000 + 10'000 * (random() % 8);
  // Some are asked for more often.
  for (int i = 0; i < 40; ++i) {
    out.sequence.push_back(std::min(random() % buffers, random() % buffers));
  }
  return out;
}

// The least that has to be copied: over all sets of buffers that could be there.
Bytes least_copied(const Requests& requests) {
  const std::size_t sets = std::size_t{1} << requests.size.size();
  const auto bytes_of = [&](std::size_t set) {
    Bytes out = 0;
    for (std::size_t i = 0; i < requests.size.size(); ++i) {
      if ((set >> i & 1) != 0) out += requests.size[i];
    }
    return out;
  };
  std::vector<Bytes> least(sets, UINT64_MAX);
  least[0] = 0;
  for (const std::size_t buffer : requests.sequence) {
    const std::size_t bit = std::size_t{1} << buffer;
    std::vector<Bytes> next(sets, UINT64_MAX);
    for (std::size_t set = 0; set < sets; ++set) {
      if (least[set] == UINT64_MAX) continue;
      const Bytes cost = least[set] + ((set & bit) != 0 ? 0 : requests.size[buffer]);
      // Keep any part of the others.
      for (std::size_t kept = set;; kept = (kept - 1) & set) {
        const std::size_t now = kept | bit;
        if (bytes_of(now) <= requests.memory) next[now] = std::min(next[now], cost);
        if (kept == 0) break;
      }
    }
    least = std::move(next);
  }
  return *std::min_element(least.begin(), least.end());
}

Distance from_least_copied(const std::string& name, bool all_at_once) {
  Distances distances;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Requests wanted = requests(seed);
    const auto policy = made(name);
    VirtualNode node({virtual_device(DeviceClass::kGpu, 1, 1, 1, wanted.memory)}, *policy);
    Workload work;
    for (std::size_t i = 0; i < wanted.sequence.size(); ++i) {
      VirtualTask task;
      task.cost_ns = 1000;
      task.resident = {{wanted.sequence[i] + 1, wanted.size[wanted.sequence[i]], Access::kRead}};
      task.at = all_at_once ? 0 : static_cast<Nanos>(i) * 10'000'000;
      work.tasks.push_back(task);
    }
    const Outcome outcome = node.run(work);
    EXPECT_EQ(outcome.violation, "");
    const Bytes least = least_copied(wanted);
    EXPECT_GE(outcome.copied, least) << "nothing beats the oracle";
    distances.add(static_cast<double>(outcome.copied) / static_cast<double>(least));
  }
  return distances.get();
}

TEST(Distance, EvictionsFromOneThatKnowsTheFuture) {
  const auto pin = [](const std::string& name, bool all_at_once, Distance pinned) {
    expect_pinned(name + (all_at_once ? ", bytes copied, queue known" : ", bytes copied"),
                  from_least_copied(name, all_at_once), pinned);
  };
  pin("lru", false, {1.191, 2.077});
  pin("cost", false, {1.226, 2.038});
  pin("lru", true, {1.191, 2.077});
  pin("cost", true, {1.036, 1.385});
}

// ---- whole nodes ----

struct Node {
  std::string name;
  std::vector<VirtualDevice> devices;
};
std::vector<Node> nodes() {
  const auto cpu = [](double speed) {
    return virtual_device(DeviceClass::kCpu, speed, 8, 4, 64'000'000'000);
  };
  const auto gpu = [](double speed, Bytes memory) {
    return virtual_device(DeviceClass::kGpu, speed, 80, 16, memory);
  };
  std::vector<Node> out = {
      {"cpu", {cpu(1)}},
      {"cpu, gpu x10", {cpu(1), gpu(10, 16'000'000)}},
      {"gpus x1 x2 x4 x8",
       {gpu(1, 16'000'000), gpu(2, 16'000'000), gpu(4, 16'000'000), gpu(8, 16'000'000)}}};
  Node eight{"8 gpus", {}};
  for (int i = 0; i < 8; ++i) eight.devices.push_back(gpu(10, 16'000'000));
  out.push_back(eight);
  return out;
}

// Figure 8: `small` of eight programs have small tasks, the others large ones, as much work each.
Workload programs(int small) {
  Workload out;
  for (std::uint32_t program = 0; program < 8; ++program) {
    const bool is_small = static_cast<int>(program) < small;
    const int tasks = is_small ? 320 : 20;
    for (int i = 0; i < tasks; ++i) {
      VirtualTask task;
      task.client = program + 1;
      task.kernel = is_small ? 64 : 1024;
      task.cost_ns = is_small ? 1'000'000 : 16'000'000;
      task.work = 1U << 20;  // all of a device's elements
      task.temporary = is_small ? 10'000 : 1'000'000;
      out.tasks.push_back(task);
    }
  }
  return out;
}

// What nothing can beat: all devices busy to the end, or the largest task on the fastest device.
double bound(const Node& node, const Workload& work) {
  double all = 0, largest = 0, speeds = 0, fastest = 0;
  for (const VirtualTask& task : work.tasks) {
    all += task.cost_ns;
    largest = std::max(largest, task.cost_ns);
  }
  for (const VirtualDevice& device : node.devices) {
    speeds += device.speed;
    fastest = std::max(fastest, device.speed);
  }
  return std::max(all / speeds, largest / fastest);
}

Distance from_bound(const std::string& name, const Node& on) {
  Distances distances;
  for (int small = 0; small <= 8; ++small) {
    const Workload work = programs(small);
    const auto policy = made(name);
    VirtualNode node(on.devices, *policy);
    const Outcome outcome = node.run(work);
    EXPECT_EQ(outcome.violation, "") << name;
    distances.add(static_cast<double>(outcome.makespan) / bound(on, work));
  }
  return distances.get();
}

TEST(Distance, EightProgramsOfSmallAndLargeTasksFromABound) {
  const std::map<std::string, std::vector<Distance>> pinned = {
      {"two-level", {{1, 1}, {1.051, 1.1}, {1.068, 1.137}, {1.01, 1.038}}},
      {"hybrid", {{1, 1}, {1.07, 1.113}, {1.068, 1.137}, {1.01, 1.038}}},
      {"earliest-finish", {{1, 1}, {1.006, 1.032}, {1.009, 1.032}, {1.005, 1.018}}},
      {"earliest-finish+first-fit+one-line",
       {{1, 1}, {1.022, 1.053}, {1.033, 1.066}, {1.012, 1.026}}}};
  const std::vector<Node> all = nodes();
  for (const auto& [name, pins] : pinned) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_pinned(name + ", 8 programs on " + all[i].name, from_bound(name, all[i]), pins[i]);
    }
  }
}

// Eight programs whose tasks are brief, on a GPU that runs one program's kernels at a time and
// takes as long as several of them to go on with another's. From all kernels in a row.
Distance brief_on_a_gpu(const std::string& settings) {
  Distances distances;
  for (const Nanos brief : {5'000, 20'000, 100'000}) {
    auto policy = make_policy("", settings);
    EXPECT_TRUE(policy.ok());
    VirtualDevice gpu = virtual_device(DeviceClass::kGpu, 1, 80, 16, 0);
    gpu.switch_ns = 100'000;
    gpu.copy_latency = 1000;
    VirtualNode node({gpu}, *policy.value());
    node.runs_ahead = true;
    Workload work;
    double all = 0;
    for (std::uint32_t program = 0; program < 8; ++program) {
      for (Nanos left = 30'000'000; left > 0; left -= brief) {
        VirtualTask task;
        task.client = program + 1;
        task.cost_ns = static_cast<double>(brief);
        task.work = 1U << 20;
        task.temporary = 1000;
        all += task.cost_ns;
        work.tasks.push_back(task);
      }
    }
    const Outcome outcome = node.run(work);
    EXPECT_EQ(outcome.violation, "");
    distances.add(static_cast<double>(outcome.makespan) / all);
  }
  return distances.get();
}

TEST(Distance, EightProgramsOfBriefTasksThatAGpuRunsInTurns) {
  const auto expect = [](const std::string& how, const std::string& settings, Distance pinned) {
    expect_pinned("8 programs on a gpu, " + how, brief_on_a_gpu(settings), pinned);
  };
  expect("task by task", "turn-us=0", {9.666, 20.999});
  expect("in turns of 2 ms", "", {1.054, 1.054});
  expect("in turns of 8 ms", "turn-us=8000", {1.014, 1.014});
}

// ---- the checker is checked ----

// A policy that does what it wraps, but for one fault.
enum class Planted {
  kNone,
  kForgetsEvictions,
  kGrantsTwice,
  kGrantsWithoutRoom,
  kAnotherDevice,
  kLosesATask,
  kForgetsAnEnd,
  kForgetsWhatWasDropped,
  kEvictsTwice,
};
constexpr int kPlanted = 9;

class Faulty final : public Policy {
 public:
  Faulty(std::unique_ptr<Policy> right, Planted fault) : right_(std::move(right)), fault_(fault) {}
  std::string_view name() const override { return "faulty"; }
  void add_client(ClientId client, double weight) override { right_->add_client(client, weight); }
  void remove_client(ClientId client) override { right_->remove_client(client); }
  void add_device(DeviceId device, const DeviceDescription& description) override {
    DeviceDescription wrong = description;
    if (fault_ == Planted::kGrantsWithoutRoom) wrong.memory *= 2;
    right_->add_device(device, wrong);
    ++devices_;
  }
  void change_device(DeviceId device, const DeviceDescription& description) override {
    right_->change_device(device, description);
  }
  void put(TaskDescription task) override {
    if (fault_ == Planted::kLosesATask && ++count_ == 7) return;
    right_->put(std::move(task));
  }
  Decision next(Nanos now) override {
    if (again_) return {std::exchange(again_, std::nullopt), {}};
    Decision out = right_->next(now);
    if (!out.evictions.empty() && fault_ == Planted::kForgetsEvictions) {
      for (const Eviction& one : out.evictions) right_->drop(one.buffer, one.device);
      return next(now);
    }
    if (!out.evictions.empty() && fault_ == Planted::kEvictsTwice) {
      out.evictions.push_back(out.evictions.front());
    }
    if (out.grant && ++grants_ == 5) {
      if (fault_ == Planted::kGrantsTwice) again_ = out.grant;
      if (fault_ == Planted::kAnotherDevice) {
        out.grant->device.value = static_cast<std::uint16_t>(out.grant->device.value + devices_);
      }
    }
    return out;
  }
  void finish(const TaskEnd& end) override {
    if (fault_ == Planted::kForgetsAnEnd) return;
    right_->finish(end);
  }
  void cancel(TaskKey task) override { right_->cancel(task); }
  void place(BufferKey buffer, DeviceId device, Bytes size) override {
    right_->place(buffer, device, size);
  }
  void drop(BufferKey buffer, DeviceId device) override {
    if (fault_ != Planted::kForgetsWhatWasDropped) right_->drop(buffer, device);
  }
  Nanos ask_again_at() const override { return right_->ask_again_at(); }

 private:
  std::unique_ptr<Policy> right_;
  Planted fault_;
  std::optional<Grant> again_;
  int count_ = 0, grants_ = 0, devices_ = 0;
};

TEST(Distance, PlantedFaultsAreFound) {
  for (int fault = 0; fault < kPlanted; ++fault) {
    std::string found;
    for (std::uint32_t seed = 0; seed < 30 && found.empty(); ++seed) {
      std::mt19937 random(seed);
      Faulty policy(made(""), static_cast<Planted>(fault));
      VirtualNode node({virtual_device(DeviceClass::kCpu, 1, 4, 3, 1000),
                        virtual_device(DeviceClass::kGpu, 4, 1, 3, 1000)},
                       policy);
      Workload work;
      for (int i = 0; i < 60; ++i) {
        VirtualTask task;
        task.cost_ns = 1000.0 * static_cast<double>(1 + random() % 50);
        task.temporary = random() % 300;
        task.resident = {{1 + random() % 8, 200, Access::kRead}};
        work.tasks.push_back(task);
      }
      found = node.run(work).violation;
    }
    std::printf("planted fault %d: %s\n", fault, found.empty() ? "-" : found.c_str());
    EXPECT_EQ(found.empty(), static_cast<Planted>(fault) == Planted::kNone) << fault;
  }
}

}  // namespace
}  // namespace amasia::devices::policy
