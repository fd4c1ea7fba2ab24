// SPDX-License-Identifier: Apache-2.0
// For tests that put files or sockets somewhere.
#pragma once

#include <stdlib.h>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/base.hpp"

namespace amasia::devices {

// A new folder of its own, which whoever asks for it removes. The test program ends where there can
// be none.
inline std::string make_test_folder(std::string_view name) {
  // mkdtemp writes over the last six letters.
  std::string path = fmt::format("{}amasia-{}-{:X<6}", testing::TempDir(), name, "");
  AMASIA_CHECK(::mkdtemp(path.data()) != nullptr, "there is room for temporary files");
  return path;
}

}  // namespace amasia::devices
