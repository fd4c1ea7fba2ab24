// SPDX-License-Identifier: Apache-2.0
#include "devices/ids.hpp"

namespace amasia::devices {

const char* name_of(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::kCpu:
      return "cpu";
    case DeviceClass::kGpu:
      return "gpu";
    case DeviceClass::kAccelerator:
      return "accelerator";
  }
  return "?";
}

}  // namespace amasia::devices
