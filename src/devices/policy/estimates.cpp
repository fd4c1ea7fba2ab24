// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/estimates.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>

namespace amasia::devices::policy {
namespace {

// A moving mean forgets what is older than so many samples.
constexpr std::uint32_t kMemory = 8;
// What a task of a run takes at least, with its launch: runs are of brief ones only.
constexpr Nanos kLaunch = 4 * base::kMicrosecond;
// Kernels come from clients: beyond so many means all are forgotten and learnt anew.
constexpr std::size_t kMeansMax = 1U << 16;
// Bytes from which on a copy tells of bandwidth rather than latency.
constexpr Bytes kLongCopy = 64 * base::kKiB;

std::uint32_t size_of(std::uint64_t work) {
  return static_cast<std::uint32_t>(std::bit_width(work == 0 ? 1 : work) - 1);
}
double work_of(const TaskDescription& task) {
  return static_cast<double>(task.work_items == 0 ? 1 : task.work_items);
}
Nanos time_of(const TaskDescription& task, double per_work) {
  const Nanos one = std::max<Nanos>(1, std::llround(per_work * work_of(task)));
  return task.count == 1 ? one : std::max(one, kLaunch) * task.count;
}
void blend(double& mean, double sample, std::uint32_t samples) {
  mean += (sample - mean) / std::min<std::uint32_t>(samples, kMemory);
}

}  // namespace

void Estimates::add_device(const DeviceTerms& terms) {
  links_.push_back({static_cast<double>(terms.copy_latency), 1e9 / terms.copy_bytes_per_s, 1});
  slowness_.push_back(1);
}

void Estimates::replace_device(DeviceId device, const DeviceTerms& terms) {
  std::erase_if(means_, [&](const auto& one) { return one.first.device == device.value; });
  for (auto& [kernel, seen] : kernels_) seen.devices &= ~set_of(device);
  links_[device.value] = {static_cast<double>(terms.copy_latency), 1e9 / terms.copy_bytes_per_s, 1};
  slowness_[device.value] = 1;
}

const Estimates::Mean* Estimates::find(std::uint64_t kernel, std::uint32_t size,
                                       DeviceId device) const {
  const auto found = means_.find({kernel, size, device.value});
  return found == means_.end() ? nullptr : &found->second;
}

void Estimates::learn(const TaskDescription& task, const TaskEnd& end, Nanos kept,
                      Bytes copied) {
  if (!end.succeeded || end.device.value >= links_.size()) return;
  Link& link = links_[end.device.value];
  if (end.copy_time > 0 && copied > 0) {
    if (copied >= kLongCopy) {
      const double rest = static_cast<double>(end.copy_time) - link.latency_ns;
      blend(link.ns_per_byte, std::max(0.0, rest) / static_cast<double>(copied), ++link.samples);
    } else {
      blend(link.latency_ns, static_cast<double>(end.copy_time), kMemory);
    }
  }
  if (end.run_time <= 0) return;
  if (means_.size() >= kMeansMax) {
    means_.clear();
    kernels_.clear();
  }
  const std::uint32_t size = size_of(task.work_items);
  Mean& mean = means_[{task.kernel, size, end.device.value}];
  ++mean.samples;
  const double all_work = work_of(task) * task.count;
  blend(mean.per_work, static_cast<double>(end.run_time) / all_work, mean.samples);
  blend(mean.kept_per_work, static_cast<double>(kept) / all_work, mean.samples);
  Seen& seen = kernels_[task.kernel];
  seen.sizes |= std::uint64_t{1} << size;
  seen.devices |= set_of(end.device);
  // How this device compares with others, for kernels that never ran here.
  for (std::uint16_t i = 0; i < links_.size(); ++i) {
    if (i == end.device.value) continue;
    const Mean* other = find(task.kernel, size, DeviceId(i));
    if (other == nullptr || other->per_work <= 0) continue;
    const double ratio = mean.per_work / other->per_work * slowness_[i];
    blend(slowness_[end.device.value], ratio, kMemory);
    break;
  }
}

// Of the size that was measured there and is the most like the task's.
const Estimates::Mean* Estimates::nearest(const TaskDescription& task, DeviceId device) const {
  const auto seen = kernels_.find(task.kernel);
  if (seen == kernels_.end() || !contains(seen->second.devices, device)) return nullptr;
  const auto wanted = static_cast<int>(size_of(task.work_items));
  const Mean* best = nullptr;
  for (int away = 0; away < 64 && best == nullptr; ++away) {
    for (const int size : {wanted - away, wanted + away}) {
      if (size < 0 || size > 63 || (seen->second.sizes >> size & 1) == 0) continue;
      if (best == nullptr) best = find(task.kernel, static_cast<std::uint32_t>(size), device);
    }
  }
  return best;
}

std::optional<Nanos> Estimates::run(const TaskDescription& task, DeviceId device) const {
  const Mean* const mean = nearest(task, device);
  if (mean == nullptr) return std::nullopt;
  return time_of(task, mean->per_work);
}

std::optional<Nanos> Estimates::keeps(const TaskDescription& task, DeviceId device) const {
  const Mean* const mean = nearest(task, device);
  if (mean == nullptr) return std::nullopt;
  return time_of(task, mean->kept_per_work);
}

std::optional<Nanos> Estimates::run_anywhere(const TaskDescription& task, DeviceId device) const {
  if (const auto here = run(task, device)) return here;
  const auto seen = kernels_.find(task.kernel);
  if (seen == kernels_.end()) return std::nullopt;
  for (std::uint16_t i = 0; i < links_.size(); ++i) {
    const auto there = run(task, DeviceId(i));
    if (!there) continue;
    const double ratio = slowness_[device.value] / slowness_[i];
    return std::max<Nanos>(1, std::llround(static_cast<double>(*there) * ratio));
  }
  return std::nullopt;
}

Nanos Estimates::copy(Bytes bytes, DeviceId device) const {
  if (bytes == 0) return 0;
  const Link& link = links_[device.value];
  return std::llround(link.latency_ns + static_cast<double>(bytes) * link.ns_per_byte);
}

}  // namespace amasia::devices::policy
