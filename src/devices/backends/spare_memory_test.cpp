// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/spare_memory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace amasia::devices {
namespace {

TEST(SpareMemory, holds_at_most_its_limit_and_loses_nothing) {
  std::mt19937 random(3);
  SpareMemory spare(4096);
  std::map<std::uint64_t, Bytes> inside;
  std::uint64_t next = 1;
  for (int round = 0; round < 5000; ++round) {
    const Bytes size = Bytes{256} << random() % 6;
    if (random() % 2 == 0) {
      const std::uint64_t address = spare.take(size);
      if (address == 0) {
        for (const auto& [other, its_size] : inside) EXPECT_NE(its_size, size) << other;
      } else {
        ASSERT_EQ(inside.at(address), size);
        inside.erase(address);
      }
    } else {
      const std::uint64_t address = next++;
      inside[address] = size;
      for (const std::uint64_t freed : spare.put(address, size)) {
        ASSERT_EQ(inside.erase(freed), 1U);
      }
    }
    Bytes held = 0;
    for (const auto& [address, size_of] : inside) held += size_of;
    EXPECT_EQ(spare.held(), held);
    EXPECT_LE(held, 4096U);
  }
  EXPECT_EQ(spare.take_all().size(), inside.size());
  EXPECT_EQ(spare.held(), 0U);
}

TEST(SpareMemory, gives_what_was_put_last) {
  SpareMemory spare(4096);
  for (const std::uint64_t address : {1, 2, 3}) spare.put(address, 64);
  spare.put(4, 128);
  EXPECT_EQ(spare.take(64), 3U);
  EXPECT_EQ(spare.take(64), 2U);
  EXPECT_EQ(spare.take(64), 1U);
  EXPECT_EQ(spare.take(64), 0U);
}

TEST(SpareMemory, forgets_sizes_of_which_it_has_none) {
  SpareMemory spare(1 << 20);
  for (Bytes size = 1; size < 1000; ++size) {
    spare.put(size, size);
    EXPECT_EQ(spare.take(size), size);
    EXPECT_EQ(spare.take(size), 0U);
  }
  EXPECT_EQ(spare.held(), 0U);
  for (Bytes size = 1; size < 1000; ++size) spare.put(size, size);
  EXPECT_EQ(spare.take_all().size(), 999U);
}

}  // namespace
}  // namespace amasia::devices
