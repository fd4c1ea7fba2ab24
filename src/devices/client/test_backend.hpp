// SPDX-License-Identifier: Apache-2.0
// For tests of clients: devices that have kernels of any name and no buffers. What happens to what
// is submitted to them is the test's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/backends/backend.hpp"

namespace amasia::devices {

class TestBackend : public Backend {
 public:
  TestBackend(std::size_t devices, std::uint32_t depth,
              DeviceClass device_class = DeviceClass::kCpu)
      : devices_(devices) {
    for (DeviceDescription& device : devices_) {
      device.identity = fmt::format("test/{}", &device - devices_.data());
      device.queue_depth = depth;
      device.device_class = device_class;
    }
  }
  std::string_view name() const override { return "test"; }
  const std::vector<DeviceDescription>& devices() const override { return devices_; }
  ProgramKinds takes(LocalDevice) const override { return set_of(ProgramKind::kHostFunction); }
  std::unique_ptr<LoadedKernel> load(LocalDevice, const ProgramCode&, const std::string&,
                                     std::size_t, Outcome*) override {
    return std::make_unique<LoadedKernel>();
  }
  std::unique_ptr<DeviceBuffer> allocate(LocalDevice, Bytes, void*, Outcome*) override {
    return nullptr;
  }

 private:
  std::vector<DeviceDescription> devices_;
};

}  // namespace amasia::devices
