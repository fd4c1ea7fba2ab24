// SPDX-License-Identifier: Apache-2.0
// How long tasks take, learnt from those that ended: per kernel, size and device moving means, and
// per device what a copied byte takes. Nothing is believed beyond a client's own tasks but time,
// and a client that lies about that only misplaces tasks of kernels it shares.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "devices/policy/terms.hpp"

namespace amasia::devices::policy {

class Estimates {
 public:
  void add_device(const DeviceTerms& terms);
  // The number stands for another device: nothing is known of it.
  void replace_device(DeviceId device, const DeviceTerms& terms);
  // `kept`: for how much of the time that it ran the task kept the device from others.
  void learn(const TaskDescription& task, const TaskEnd& end, Nanos kept, Bytes copied);

  // What the kernel takes on the device. Of another size where that was measured there: taken as
  // proportional to the work. nullopt: never ran there.
  std::optional<Nanos> run(const TaskDescription& task, DeviceId device) const;
  // In the same way what it keeps the device for. Where kernels of several tasks run at once, and
  // take longer for it, that is less.
  std::optional<Nanos> keeps(const TaskDescription& task, DeviceId device) const;
  // What run() says, and where it never ran there: from another device, by what kernels that ran on
  // both took. nullopt: ran nowhere.
  std::optional<Nanos> run_anywhere(const TaskDescription& task, DeviceId device) const;
  Nanos copy(Bytes bytes, DeviceId device) const;

 private:
  struct Key {
    std::uint64_t kernel;
    std::uint32_t size;  // of the work, as a power of two
    std::uint32_t device;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return (key.kernel ^ (std::uint64_t{key.size} << 32 | key.device)) * 0x9e3779b97f4a7c15U;
    }
  };
  struct Mean {
    double per_work = 0, kept_per_work = 0;  // ns of a work item
    std::uint32_t samples = 0;
  };
  struct Link {
    double latency_ns = 0, ns_per_byte = 0;
    std::uint32_t samples = 0;
  };
  const Mean* find(std::uint64_t kernel, std::uint32_t size, DeviceId device) const;
  const Mean* nearest(const TaskDescription& task, DeviceId device) const;

  std::unordered_map<Key, Mean, KeyHash> means_;
  // Of a kernel, which sizes were measured on any device, and on which devices.
  struct Seen {
    std::uint64_t sizes = 0;
    DeviceSet devices = 0;
  };
  std::unordered_map<std::uint64_t, Seen> kernels_;
  std::vector<Link> links_;
  // speed_[a]: what device a takes for what device 0 … takes 1 for, a moving mean of ratios.
  std::vector<double> slowness_;
};

}  // namespace amasia::devices::policy
