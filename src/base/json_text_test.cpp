// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <gtest/gtest.h>

namespace amasia::base {
namespace {

TEST(JsonText, EscapesWhatJsonDoesNotAllow) {
  EXPECT_EQ(json_text(""), "\"\"");
  EXPECT_EQ(json_text("a \"b\" \\ /"), "\"a \\\"b\\\" \\\\ /\"");
  EXPECT_EQ(json_text("\x7f \xc3\xa4"), "\"\x7f \xc3\xa4\"");
  for (char control = 0; control < 0x20; ++control) {
    char wanted[16];
    std::snprintf(wanted, sizeof wanted, "\"\\u%04x\"", control);
    EXPECT_EQ(json_text(std::string_view(&control, 1)), wanted);
  }
}

}  // namespace
}  // namespace amasia::base
