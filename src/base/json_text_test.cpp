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

// Names of programs may be any bytes, and be cut anywhere.
TEST(JsonText, IsUtf8WhateverComesIn) {
  for (const char* text : {"\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(json_text(text), '"' + std::string(text) + '"');
  }
  EXPECT_EQ(json_text("caf\xe9"), "\"caf\\ufffd\"");
  EXPECT_EQ(json_text("\xe9\"x"), "\"\\ufffd\\\"x\"");
  EXPECT_EQ(json_text("\xe2\x82"), "\"\\ufffd\\ufffd\"");
  const std::string bad = "\\ufffd";
  for (const char* text : {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xff", "\xf5\x80\x80\x80",
                           "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80"}) {
    std::string wanted;
    for (std::size_t i = 0; i < std::string_view(text).size(); ++i) wanted += bad;
    EXPECT_EQ(json_text(text), '"' + wanted + '"');
  }
}

}  // namespace
}  // namespace amasia::base
