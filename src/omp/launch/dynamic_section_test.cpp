// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/dynamic_section.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace amasia::omp {
namespace {

TEST(DynamicSection, TellsTheFunctionsThatAnObjectDefinesForOthers) {
  const auto objects = std::make_unique<ObjectTable>();
  ASSERT_TRUE(objects->scan(reinterpret_cast<const void*>(&exported_functions)));
  std::size_t libraries = 0;
  for (std::size_t i = 0; i < objects->size(); ++i) {
    const LoadedObject& object = (*objects)[i];
    if (std::string_view(object.path).find("/libc.so.6") == std::string_view::npos) continue;
    ++libraries;
    const auto names = exported_functions(object);
    for (const char* const name : {"write", "qsort", "getenv"}) {
      EXPECT_EQ(std::ranges::count(names, name), 1) << name;
    }
    EXPECT_EQ(std::ranges::count(names, "stdout"), 0) << "data";
    EXPECT_EQ(std::ranges::count(names, "__tls_get_addr"), 0) << "what it takes from others";
    const auto taken = imported_names(object);
    EXPECT_GE(std::ranges::count(taken, "__tls_get_addr"), 1);
    EXPECT_EQ(std::ranges::count(taken, "qsort"), 0) << "its own";
    EXPECT_TRUE(objects->is_of_c_library(reinterpret_cast<const void*>(object.begin)));
  }
  EXPECT_EQ(libraries, 1u);
  EXPECT_FALSE(objects->is_of_c_library(objects.get()));
}

}  // namespace
}  // namespace amasia::omp
