// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/same_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace amasia::devices {
namespace {

// Takes a hexadecimal number of 1 to `most_digits` digits and the mark after it off the text.
bool take_number(std::string_view& text, std::size_t most_digits, std::uint32_t most, char mark,
                 std::uint32_t& value) {
  const std::size_t end = mark == '\0' ? text.size() : text.find(mark);
  if (end == std::string_view::npos || end == 0 || end > most_digits) return false;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, value, 16);
  if (error != std::errc() || stop != text.data() + end || value > most) return false;
  text.remove_prefix(mark == '\0' ? end : end + 1);
  return true;
}

}  // namespace

std::optional<PciAddress> parse_pci(std::string_view text) {
  PciAddress address;
  if (take_number(text, 8, 0xffffffff, ':', address.domain) &&
      take_number(text, 2, 0xff, ':', address.bus) &&
      take_number(text, 2, 0x1f, '.', address.device) &&
      take_number(text, 1, 7, '\0', address.function)) {
    return address;
  }
  return std::nullopt;
}

std::string text_of(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

void identify_by_address(std::vector<DeviceDescription>& devices) {
  for (DeviceDescription& device : devices) {
    if (device.pci.empty()) continue;
    const auto there =
        std::count_if(devices.begin(), devices.end(),
                      [&](const DeviceDescription& one) { return one.pci == device.pci; });
    if (there == 1) device.identity = "pci/" + device.pci;
  }
}

std::vector<DeviceSet> same_devices(std::span<const DeviceDescription> devices) {
  AMASIA_CHECK(devices.size() <= kMaxDevices, "more devices than a set can hold");
  std::vector<DeviceSet> same(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < devices.size(); ++j) {
      if (devices[i].identity == devices[j].identity) same[i] |= DeviceSet{1} << j;
    }
  }
  return same;
}

std::vector<DeviceDescription> each_once(std::span<const DeviceDescription> devices) {
  std::vector<DeviceDescription> out;
  for (const DeviceDescription& device : devices) {
    const auto first = std::find_if(out.begin(), out.end(), [&](const DeviceDescription& one) {
      return one.identity == device.identity;
    });
    if (first == out.end()) {
      out.push_back(device);
    } else {
      first->backend += ", " + device.backend;
    }
  }
  return out;
}

}  // namespace amasia::devices
