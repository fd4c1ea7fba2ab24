// SPDX-License-Identifier: Apache-2.0
#include "tools/image_text.hpp"

#include <gtest/gtest.h>

namespace amasia::tools {
namespace {

os::ProcessImage sample() {
  os::ProcessImage image;
  image.executable = "/bin/x y";
  image.arguments = {"x", "", "a\nb"};
  image.environment = {"A=1"};
  image.working_directory = "/";
  image.limits[RLIMIT_STACK] = {8 << 20, RLIM_INFINITY};
  image.file_mode_mask = 027;
  return image;
}

TEST(ImageText, ComesBackAsItWas) {
  const auto again = unpack_image(pack_image(sample()));
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_TRUE(again.value().has_value());
  EXPECT_EQ(again.value()->executable, "/bin/x y");
  EXPECT_EQ(again.value()->arguments, sample().arguments);
  EXPECT_EQ(again.value()->environment, sample().environment);
  EXPECT_EQ(again.value()->limits[RLIMIT_STACK].rlim_cur, rlim_t{8 << 20});
  EXPECT_EQ(again.value()->limits[RLIMIT_STACK].rlim_max, RLIM_INFINITY);
  EXPECT_EQ(again.value()->file_mode_mask, mode_t{027});
  const auto none = unpack_image(pack_image(std::nullopt));
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none.value().has_value());
}

TEST(ImageText, NothingCutOrExtendedIsAccepted) {
  std::vector<std::byte> bytes = pack_image(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(unpack_image(std::span(bytes).first(size)).ok()) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(unpack_image(bytes).ok());
}

TEST(ImageText, ACountThatCannotBeIsRefused) {
  std::vector<std::byte> bytes = pack_image(sample());
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::vector<std::byte> broken = bytes;
    std::fill(broken.begin() + static_cast<std::ptrdiff_t>(at),
              broken.begin() + static_cast<std::ptrdiff_t>(at) + 8, std::byte{0xff});
    static_cast<void>(unpack_image(broken).ok());  // must not crash or allocate without bound
  }
}

}  // namespace
}  // namespace amasia::tools
