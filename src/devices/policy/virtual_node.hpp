// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: a node that there is not, in virtual time. Devices of unlike speed,
// each with a link that copies one task's data at a time and processing elements that tasks share;
// clients that put tasks at given times; evictions that take a while. It plays the daemon to a
// policy, and holds what the policy decides against its own account of memory, depth, quotas and
// residency. Deterministic.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "devices/policy/policy.hpp"
#include "devices/policy/terms.hpp"

namespace amasia::devices::policy::simulation {

struct VirtualDevice {
  DeviceDescription description;
  double speed = 1;
  double bytes_per_s = 10e9;
  Nanos copy_latency = 10 * base::kMicrosecond;
  // Not negative: kernels of two clients do not run at once, and to go on with another's takes so
  // long.
  Nanos switch_ns = -1;
};

struct VirtualTask {
  std::uint32_t client = 0;
  std::uint64_t kernel = 1;
  std::uint64_t work = 1;
  double cost_ns = 0;  // on a device of speed 1
  DeviceSet allowed = kMaxDevices == 64 ? ~DeviceSet{0} : 0;
  DeviceSet preferred = 0;
  std::int32_t priority = 0;
  Bytes temporary = 0;
  std::vector<TaskArgument> resident;
  Nanos at = 0;
};

struct Workload {
  std::vector<VirtualTask> tasks;
  std::map<std::uint32_t, double> weights;  // 1 where none is given
  // What a kernel's speed is on a device, beside the device's own; unset: 1.
  std::function<double(std::uint64_t kernel, std::size_t device)> affinity;
};

struct Outcome {
  std::string violation;  // "" if the policy kept to the rules
  Nanos makespan = 0;
  Bytes copied = 0;
  std::uint64_t evictions = 0;
  std::vector<Nanos> granted, ended;       // for each task
  std::vector<std::uint32_t> device;       // for each task
  std::vector<std::uint32_t> grant_order;  // tasks
};

class VirtualNode {
 public:
  VirtualNode(std::vector<VirtualDevice> devices, Policy& policy)
      : devices_(std::move(devices)), policy_(policy), state_(devices_.size()) {
    for (std::uint16_t i = 0; i < devices_.size(); ++i) {
      policy_.add_device(DeviceId(i), devices_[i].description);
    }
  }

  // Quotas that the policy was made with, to be checked.
  std::uint32_t in_flight_max = UINT32_MAX;
  bool runs_ahead = false;  // brief tasks may be in flight beyond a device's depth
  Bytes client_bytes_max = UINT64_MAX;
  Nanos eviction_ns = 20 * base::kMicrosecond;

  // May be called again: what was learnt, and what is resident, stays.
  Outcome run(const Workload& work) {
    work_ = &work;
    out_ = {};
    out_.granted.assign(work.tasks.size(), -1);
    out_.ended.assign(work.tasks.size(), -1);
    out_.device.assign(work.tasks.size(), 0);
    begin_ = now_;
    for (std::uint32_t i = 0; i < work.tasks.size(); ++i) {
      const std::uint32_t client = work.tasks[i].client;
      if (clients_.insert(client).second) {
        const auto weight = work.weights.find(client);
        policy_.add_client(ClientId(client), weight == work.weights.end() ? 1 : weight->second);
      }
      at(begin_ + work.tasks[i].at, [this, i] { put(i); });
    }
    // Bounded: a policy that never ends is a fault, too.
    std::uint64_t left = 1000 + 200 * work.tasks.size();
    while (!events_.empty() && out_.violation.empty()) {
      if (left-- == 0) return fail("no end in sight");
      const Event event = events_.top();
      events_.pop();
      now_ = std::max(now_, event.time);
      event.act();
      // What happens at one moment is known before the policy is asked.
      if (!events_.empty() && events_.top().time <= now_) continue;
      ask();
    }
    if (!out_.violation.empty()) return out_;
    for (std::uint32_t i = 0; i < work.tasks.size(); ++i) {
      if (out_.ended[i] < 0) return fail(fmt::format("task {} never ran", i));
    }
    first_task_ += work.tasks.size();
    return out_;
  }

 private:
  struct Event {
    Nanos time;
    std::uint64_t order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };
  struct Copied {
    Bytes bytes = 0;
    std::uint32_t pins = 0;
    bool valid = false;
    bool leaving = false;
  };
  struct State {
    Nanos link_free = 0;
    std::uint64_t elements = 0;
    std::uint32_t in_flight = 0;
    std::uint32_t client = 0;  // whose kernels ran last
    Bytes used = 0;
    std::map<BufferKey, Copied> copies;
    std::deque<std::uint32_t> ready;
  };

  void at(Nanos time, std::function<void()> act) { events_.push({time, order_++, std::move(act)}); }
  Outcome fail(std::string what) {
    if (out_.violation.empty()) {
      out_.violation = fmt::format("at {} ns: {}", now_ - begin_, std::move(what));
    }
    return out_;
  }
  const VirtualTask& task(std::uint32_t i) const { return work_->tasks[i]; }
  TaskKey key_of(std::uint32_t i) const { return {ClientId(task(i).client), first_task_ + i + 1}; }

  void put(std::uint32_t i) {
    const VirtualTask& from = task(i);
    TaskDescription to;
    to.key = key_of(i);
    to.allowed = from.allowed;
    to.preferred = from.preferred;
    to.priority = from.priority;
    to.kernel = from.kernel;
    to.work_items = from.work;
    to.temporary = from.temporary;
    to.resident = from.resident;
    to.put_at = now_;
    if (!policy_.can_run(to).ok()) {
      fail(fmt::format("task {} is refused", i));
      return;
    }
    queued_.insert(i);
    policy_.put(std::move(to));
  }

  void ask() {
    for (std::size_t answers = 0;; ++answers) {
      if (answers > 10 * work_->tasks.size() + 10) {
        fail("it answers without end");
        return;
      }
      const Decision decision = policy_.next(now_);
      if (decision.nothing() || !out_.violation.empty()) break;
      for (const Eviction& eviction : decision.evictions) evict(eviction);
      if (decision.grant) grant(*decision.grant);
      if (!out_.violation.empty()) return;
    }
    const Nanos again = policy_.ask_again_at();
    if (again < 0 || queued_.empty()) return;
    if (again <= now_) {
      fail("it wants to be asked again at once");
    } else if (events_.empty() || again < events_.top().time) {
      at(again, [] {});
    }
  }

  void evict(const Eviction& eviction) {
    State& state = state_[eviction.device.value];
    const auto copy = state.copies.find(eviction.buffer);
    if (copy == state.copies.end() || copy->second.leaving || copy->second.pins > 0) {
      fail(fmt::format("buffer {} cannot be evicted", eviction.buffer.buffer));
      return;
    }
    copy->second.leaving = true;
    ++out_.evictions;
    at(now_ + eviction_ns, [this, eviction] {
      State& on = state_[eviction.device.value];
      on.used -= on.copies.at(eviction.buffer).bytes;
      on.copies.erase(eviction.buffer);
      policy_.drop(eviction.buffer, eviction.device);
    });
  }

  void grant(const Grant& grant) {
    const auto number = grant.task.task - first_task_ - 1;
    const auto i = static_cast<std::uint32_t>(number);
    if (number >= work_->tasks.size() || queued_.erase(i) == 0) {
      fail(fmt::format("task {} is granted, and is not queued", number));
      return;
    }
    const VirtualTask& from = task(i);
    const std::uint16_t d = grant.device.value;
    if (d >= devices_.size() || !contains(from.allowed, grant.device)) {
      fail(fmt::format("task {} is granted device {}, which is not allowed", i, d));
      return;
    }
    State& state = state_[d];
    const Bytes copied = bring(i, state, d);
    const std::uint32_t depth = std::max(1U, devices_[d].description.queue_depth);
    if (++state.in_flight > (runs_ahead ? std::max(depth, kAheadMost) + kGuestsMost : depth)) {
      fail(fmt::format("device {} has {} tasks in flight", d, state.in_flight));
    }
    if (++in_flight_[from.client] > in_flight_max) {
      fail(fmt::format("client {} has {} tasks in flight", from.client, in_flight_[from.client]));
    }
    out_.granted[i] = now_ - begin_;
    out_.device[i] = d;
    out_.grant_order.push_back(i);
    out_.copied += copied;
    Nanos took = 0;
    if (copied > 0) {
      took = devices_[d].copy_latency +
             std::llround(static_cast<double>(copied) / devices_[d].bytes_per_s * 1e9);
    }
    state.link_free = std::max(state.link_free, now_) + took;
    const Nanos granted = now_;
    at(state.link_free, [this, i, d, took, granted] { arrive(i, d, took, granted); });
  }

  // Its buffers are on the device now, and its temporaries; how much of that is to be copied.
  Bytes bring(std::uint32_t i, State& state, std::uint16_t d) {
    const VirtualTask& from = task(i);
    const ClientId client(from.client);
    Bytes copied = from.temporary;
    state.used += from.temporary;
    temporaries_[{from.client, d}] += from.temporary;
    for (const TaskArgument& argument : from.resident) {
      const BufferKey key{client, argument.buffer};
      Copied& copy = state.copies[key];
      if (copy.leaving) fail(fmt::format("buffer {} is just leaving", argument.buffer));
      if (copy.bytes == 0) {
        copy.bytes = argument.size;
        state.used += argument.size;
        policy_.place(key, DeviceId(d), argument.size);
      }
      ++copy.pins;
      if (reads(argument.access) && !copy.valid) copied += argument.size;
      copy.valid = true;
      if (!writes(argument.access)) continue;
      for (State& other : state_) {
        const auto outdated = other.copies.find(key);
        if (&other != &state && outdated != other.copies.end()) outdated->second.valid = false;
      }
    }
    const Bytes memory = devices_[d].description.memory;
    if (memory != 0 && state.used > memory) {
      fail(fmt::format("device {} has {} bytes in use, of {}", d, state.used, memory));
    }
    Bytes own = temporaries_[{from.client, d}];
    for (const auto& [key, copy] : state.copies) {
      if (key.client == client && !copy.leaving) own += copy.bytes;
    }
    if (own > client_bytes_max) {
      fail(fmt::format("client {} has {} bytes on device {}", from.client, own, d));
    }
    return copied;
  }

  void arrive(std::uint32_t i, std::uint16_t d, Nanos copy_time, Nanos granted) {
    copy_times_[i] = {copy_time, granted};
    state_[d].ready.push_back(i);
    run_ready(d);
  }

  void run_ready(std::uint16_t d) {
    State& state = state_[d];
    const DeviceTerms terms = terms_of(devices_[d].description);
    while (!state.ready.empty()) {
      const std::uint32_t i = state.ready.front();
      const std::uint64_t elements = std::clamp<std::uint64_t>(task(i).work, 1, terms.elements);
      if (state.elements + elements > terms.elements) return;
      const bool changes = devices_[d].switch_ns >= 0 && state.client != task(i).client;
      if (changes && state.elements != 0) return;
      state.client = task(i).client;
      state.ready.pop_front();
      state.elements += elements;
      const double affinity = work_->affinity ? work_->affinity(task(i).kernel, d) : 1;
      const Nanos took =
          std::max<Nanos>(1, std::llround(task(i).cost_ns / (devices_[d].speed * affinity))) +
          (changes ? devices_[d].switch_ns : 0);
      at(now_ + took, [this, i, d, took, elements] { end(i, d, took, elements); });
    }
  }

  void end(std::uint32_t i, std::uint16_t d, Nanos took, std::uint64_t elements) {
    State& state = state_[d];
    state.elements -= elements;
    --state.in_flight;
    --in_flight_[task(i).client];
    state.used -= task(i).temporary;
    temporaries_[{task(i).client, d}] -= task(i).temporary;
    for (const TaskArgument& argument : task(i).resident) {
      --state.copies.at({ClientId(task(i).client), argument.buffer}).pins;
    }
    out_.ended[i] = now_ - begin_;
    out_.makespan = std::max(out_.makespan, now_ - begin_);
    const auto [copy_time, granted] = copy_times_[i];
    policy_.finish({key_of(i), DeviceId(d), true, took, copy_time, now_ - granted});
    run_ready(d);
  }

  std::vector<VirtualDevice> devices_;
  Policy& policy_;
  std::vector<State> state_;
  const Workload* work_ = nullptr;
  Outcome out_;
  Nanos now_ = 0, begin_ = 0;
  std::uint64_t order_ = 0, first_task_ = 0;
  std::priority_queue<Event> events_;
  std::set<std::uint32_t> queued_, clients_;
  std::map<std::uint32_t, std::uint32_t> in_flight_;
  std::map<std::pair<std::uint32_t, std::uint16_t>, Bytes> temporaries_;
  std::map<std::uint32_t, std::pair<Nanos, Nanos>> copy_times_;
};

inline VirtualDevice virtual_device(DeviceClass device_class, double speed, std::uint32_t units,
                                    std::uint32_t depth, Bytes memory) {
  VirtualDevice out;
  out.description.device_class = device_class;
  out.description.compute_units = units;
  out.description.queue_depth = depth;
  out.description.memory = memory;
  out.speed = speed;
  return out;
}

}  // namespace amasia::devices::policy::simulation
