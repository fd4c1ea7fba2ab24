// SPDX-License-Identifier: Apache-2.0
// One device that several drivers show: a GPU is found by CUDA and by OpenCL, and has one queue of
// tasks and one memory all the same. Where it sits on the PCI bus tells that it is one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/ids.hpp"

namespace amasia::devices {

struct PciAddress {
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;
  friend constexpr auto operator<=>(const PciAddress&, const PciAddress&) = default;
};
// "0000:65:00.0", as Linux, and CUDA with four or eight digits of domain, write it; hexadecimal.
// Nothing where the text is no such address, or a number is larger than a bus has.
std::optional<PciAddress> parse_pci(std::string_view text);
std::string text_of(const PciAddress& address);

// All devices of one back end. Those with an address that no other of them has get it as identity,
// "pci/0000:65:00.0": the same in every process and of every back end. Parts of a GPU that a driver
// shows as several devices keep the names that they had.
void identify_by_address(std::vector<DeviceDescription>& devices);

// For each of a process's devices the set of those that are the same, itself included.
std::vector<DeviceSet> same_devices(std::span<const DeviceDescription> devices);

// For people: each device once, by its first way, with all back ends that lead to it ("cuda,
// opencl") in `backend`. In the order of their first ways.
std::vector<DeviceDescription> each_once(std::span<const DeviceDescription> devices);

}  // namespace amasia::devices
