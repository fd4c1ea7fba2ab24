// SPDX-License-Identifier: Apache-2.0
// Without a GPU: a driver that answers this question and no other.
#include <gtest/gtest.h>

#include <cstring>

#include "devices/backends/cuda/cuda_device.hpp"

namespace amasia::devices::cuda {
namespace {

int cuda_says(char* text, int size, CUdevice device) {
  if (device != 3) return kInvalidValue;
  std::strncpy(text, "00000000:AF:00.0", static_cast<std::size_t>(size));
  return kSuccess;
}

TEST(CudaAddress, IsAsThePciBusHasIt) {
  Driver driver;
  EXPECT_EQ(pci_of(driver, 3), "") << "a driver without that function";
  driver.DeviceGetPCIBusId = &cuda_says;
  EXPECT_EQ(pci_of(driver, 3), "0000:af:00.0");
  EXPECT_EQ(pci_of(driver, 4), "") << "the driver refuses";
}

}  // namespace
}  // namespace amasia::devices::cuda
