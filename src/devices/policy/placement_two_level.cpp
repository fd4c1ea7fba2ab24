// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "devices/policy/placement.hpp"

namespace amasia::devices::policy {
namespace {

DeviceSet of_class(DeviceSet set, unsigned device_class, const Ledger& ledger) {
  DeviceSet out = 0;
  for (DeviceSet rest = set; rest != 0; rest &= rest - 1) {
    const DeviceId id(static_cast<std::uint16_t>(std::countr_zero(rest)));
    if (static_cast<unsigned>(ledger.device(id).terms.device_class) == device_class) {
      out |= set_of(id);
    }
  }
  return out;
}

class TwoLevel final : public PlacementPolicy {
 public:
  PlacementAnswer choose(PlacementQuestion question) override {
    return {turns_.choose(question.fitting, question.ledger)};
  }

 private:
  TwoLevelRoundRobin turns_;
};

class FirstDevice final : public PlacementPolicy {
 public:
  PlacementAnswer choose(PlacementQuestion question) override {
    return {DeviceId(static_cast<std::uint16_t>(std::countr_zero(question.fitting)))};
  }
};

}  // namespace

DeviceId TwoLevelRoundRobin::choose(DeviceSet fitting, const Ledger& ledger) {
  AMASIA_CHECK(fitting != 0, "a task is placed on one of the devices where it fits");
  for (unsigned step = 1; step <= kDeviceClasses; ++step) {
    const unsigned device_class = (class_ + step) % kDeviceClasses;
    const DeviceSet devices = of_class(fitting, device_class, ledger);
    if (devices == 0) continue;
    // The next one after the last, or the first of all.
    const unsigned after = (device_[device_class] + 1) % kMaxDevices;
    const DeviceSet later = devices & (~DeviceSet{0} << after);
    class_ = device_class;
    device_[device_class] = static_cast<unsigned>(std::countr_zero(later != 0 ? later : devices));
    return DeviceId(static_cast<std::uint16_t>(device_[device_class]));
  }
  AMASIA_CHECK(false, "every device is of a class");
  return DeviceId(0);
}

const Placement kTwoLevelPlacement = {
    .name = "two-level",
    .description = "classes take turns, and in each class its devices",
    .make = [] { return std::unique_ptr<PlacementPolicy>(std::make_unique<TwoLevel>()); }};

const Placement kFirstDevicePlacement = {
    .name = "first-device", .description = "the first device that has room", .make = [] {
      return std::unique_ptr<PlacementPolicy>(std::make_unique<FirstDevice>());
    }};

}  // namespace amasia::devices::policy
