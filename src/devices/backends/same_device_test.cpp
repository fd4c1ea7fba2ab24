// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/same_device.hpp"

#include <gtest/gtest.h>

namespace amasia::devices {
namespace {

DeviceDescription device(std::string backend, std::string identity, std::string pci) {
  DeviceDescription made;
  made.backend = std::move(backend);
  made.identity = std::move(identity);
  made.pci = std::move(pci);
  return made;
}

TEST(SameDevice, AddressesAreReadAsTheyAreWritten) {
  for (std::uint32_t domain : {0U, 1U, 0xffffU, 0x10000U, 0xffffffffU}) {
    for (std::uint32_t bus : {0U, 0x65U, 0xffU}) {
      for (std::uint32_t slot = 0; slot < 32; ++slot) {
        const PciAddress address{domain, bus, slot, slot % 8};
        EXPECT_EQ(parse_pci(text_of(address)), address) << text_of(address);
      }
    }
  }
  // CUDA writes capitals, and some versions eight digits of domain.
  EXPECT_EQ(parse_pci("00000000:AF:00.0"), parse_pci("0000:af:00.0"));
  for (const char* const wrong :
       {"", "0000", "0000:65", "0000:65:00", "0000:65:00.", "0000:65:00.8", "0000:65:20.0",
        "0000:165:00.0", "0000:65:00.0 ", " 0000:65:00.0", "0000:65:-1.0", ":65:00.0",
        "0000::00.0", "000000000:65:00.0", "0000:65:00.0.0", "0x00:65:00.0", "GPU-6f0c"}) {
    EXPECT_FALSE(parse_pci(wrong)) << wrong;
  }
}

TEST(SameDevice, AGpuThatTwoBackEndsShowIsOne) {
  std::vector<DeviceDescription> cuda = {device("cuda", "cuda/GPU-a", "0000:65:00.0"),
                                         device("cuda", "cuda/GPU-b", "0000:b3:00.0")};
  // In another order, and with a device that only OpenCL has.
  std::vector<DeviceDescription> opencl = {device("opencl", "opencl/N/H200/0", "0000:b3:00.0"),
                                           device("opencl", "opencl/N/H200/1", "0000:65:00.0"),
                                           device("opencl", "opencl/P/cpu/0", "")};
  identify_by_address(cuda);
  identify_by_address(opencl);
  EXPECT_EQ(cuda[0].identity, "pci/0000:65:00.0");
  EXPECT_EQ(opencl[2].identity, "opencl/P/cpu/0");
  std::vector<DeviceDescription> all = cuda;
  all.insert(all.end(), opencl.begin(), opencl.end());
  EXPECT_EQ(same_devices(all),
            (std::vector<DeviceSet>{0b01001, 0b00110, 0b00110, 0b01001, 0b10000}));
  const auto once = each_once(all);
  ASSERT_EQ(once.size(), 3U);
  EXPECT_EQ(once[0].backend, "cuda, opencl");
  EXPECT_EQ(once[1].identity, "pci/0000:b3:00.0");
  EXPECT_EQ(once[2].backend, "opencl");
}

TEST(SameDevice, PartsOfAGpuKeepTheirNames) {
  std::vector<DeviceDescription> parts = {device("cuda", "cuda/GPU-a", "0000:65:00.0"),
                                          device("cuda", "cuda/GPU-b", "0000:65:00.0"),
                                          device("cuda", "cuda/GPU-c", "0000:66:00.0")};
  identify_by_address(parts);
  EXPECT_EQ(parts[0].identity, "cuda/GPU-a");
  EXPECT_EQ(parts[1].identity, "cuda/GPU-b");
  EXPECT_EQ(parts[2].identity, "pci/0000:66:00.0");
}

}  // namespace
}  // namespace amasia::devices
