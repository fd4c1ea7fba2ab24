// SPDX-License-Identifier: Apache-2.0
// Without a GPU: a driver that answers this question and no other.
#include <gtest/gtest.h>

#include <cstring>

#include "devices/backends/opencl/opencl_device.hpp"

namespace amasia::devices::opencl {
namespace {

const char* extensions = "";

cl_int CL_API_CALL opencl_says(cl_device_id, cl_device_info what, std::size_t size, void* value,
                               std::size_t* needed) {
  constexpr cl_device_info kBusNv = 0x4008, kSlotNv = 0x4009, kDomainNv = 0x400A;
  constexpr cl_device_info kInfoKhr = 0x410F;
  const auto give = [&](const void* from, std::size_t bytes) {
    if (needed != nullptr) *needed = bytes;
    if (value == nullptr) return CL_SUCCESS;
    if (size < bytes) return CL_INVALID_VALUE;
    std::memcpy(value, from, bytes);
    return CL_SUCCESS;
  };
  const cl_uint bus = 0xaf, slot = 2 << 3 | 1, domain = 1, khr[4] = {0, 0x65, 3, 0};
  switch (what) {
    case CL_DEVICE_EXTENSIONS:
      return give(extensions, std::strlen(extensions) + 1);
    case kBusNv:
      return give(&bus, sizeof bus);
    case kSlotNv:
      return give(&slot, sizeof slot);
    case kDomainNv:
      return give(&domain, sizeof domain);
    case kInfoKhr:
      return give(khr, sizeof khr);
    default:
      return CL_INVALID_VALUE;
  }
}

TEST(OpenclAddress, IsAskedForAsTheExtensionsAllow) {
  Library library;
  library.GetDeviceInfo = &opencl_says;
  extensions = "cl_khr_fp64";
  EXPECT_EQ(pci_of(library, nullptr), "") << "a value that it may not be asked for";
  extensions = "cl_khr_fp64 cl_nv_device_attribute_query";
  EXPECT_EQ(pci_of(library, nullptr), "0001:af:02.1");
  extensions = "cl_nv_device_attribute_query cl_khr_pci_bus_info";
  EXPECT_EQ(pci_of(library, nullptr), "0000:65:03.0") << "the one of the standard first";
}

}  // namespace
}  // namespace amasia::devices::opencl
