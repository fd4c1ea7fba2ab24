// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "modules/storage/checkpoint_format.hpp"
#include "modules/storage/checksum.hpp"

namespace amasia::storage {
namespace {

TEST(Checksum, IsCrc32c) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xE3069283u);  // the check value of its catalogues
  EXPECT_EQ(crc32c_portable(0, "123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c(0, nullptr, 0), 0u);
}

TEST(Checksum, IsTheSameHoweverItIsMade) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<unsigned char> bytes(random() % 100);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    const std::size_t cut = bytes.empty() ? 0 : random() % bytes.size();
    const std::uint32_t whole = crc32c_portable(0, bytes.data(), bytes.size());
    EXPECT_EQ(crc32c(0, bytes.data(), bytes.size()), whole);
    EXPECT_EQ(crc32c(crc32c(0, bytes.data(), cut), bytes.data() + cut, bytes.size() - cut), whole);
  }
}

TEST(CheckpointHeader, SaysWhatIsWrong) {
  const std::vector<region> regions{{nullptr, 10}, {nullptr, 20}};
  const Header header = make_header(regions, {7, 8});
  EXPECT_EQ(header.size(), header_words(2));
  EXPECT_EQ(wrong_in_header(header, regions), std::nullopt);
  EXPECT_EQ(sum_in_header(header, 1), 8u);
  EXPECT_EQ(wrong_in_header(header, {{nullptr, 10}, {nullptr, 21}}),
            "has 20 bytes of region 1 (21 are to be restored)");
  EXPECT_EQ(wrong_in_header(header, {{nullptr, 10}}), "has 2 regions (1 are to be restored)");
  for (std::size_t word = 0; word < header.size(); ++word) {
    for (int bit = 0; bit < 64; ++bit) {
      Header changed = header;
      changed[word] ^= std::uint64_t{1} << bit;
      EXPECT_NE(wrong_in_header(changed, regions), std::nullopt) << word << " " << bit;
    }
  }
}

}  // namespace
}  // namespace amasia::storage
