// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/image.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

int some_data = 1;
int some_zeroes[5000];
const int kConstant = 3;

ObjectTable& objects() {
  static ObjectTable table;
  if (table.size() == 0) {
    AMASIA_CHECK(table.scan(reinterpret_cast<const void*>(&writable_ranges)), "it fits");
  }
  return table;
}

bool contains(const std::vector<dsm::AddressRange>& ranges, const void* address) {
  for (const dsm::AddressRange& range : ranges) {
    if (range.contains(reinterpret_cast<std::uintptr_t>(address))) return true;
  }
  return false;
}

TEST(Image, GlobalsAreWritableDataOfTheProgramInWholePages) {
  auto ranges = global_ranges(objects());
  ASSERT_TRUE(ranges.ok());
  EXPECT_TRUE(contains(ranges.value(), &some_data));
  EXPECT_TRUE(contains(ranges.value(), &some_zeroes[0]));
  EXPECT_TRUE(contains(ranges.value(), &some_zeroes[4999]));
  EXPECT_FALSE(contains(ranges.value(), &kConstant));
  EXPECT_FALSE(contains(ranges.value(), reinterpret_cast<const void*>(&objects)));
  EXPECT_FALSE(contains(ranges.value(), stdout));  // the C library's own
  for (const dsm::AddressRange& range : ranges.value()) {
    EXPECT_EQ(range.begin % base::kPageSize, 0u);
    EXPECT_EQ(range.end % base::kPageSize, 0u);
    EXPECT_LT(range.begin, range.end);
  }
}

TEST(Objects, CodeOfTheProgramAndOfTheCLibraryIsToldApart) {
  EXPECT_FALSE(objects().allocates_privately(reinterpret_cast<const void*>(&objects)));
  EXPECT_FALSE(objects().allocates_privately(reinterpret_cast<const void*>(&std::malloc)));
  EXPECT_TRUE(objects().is_from_start(reinterpret_cast<const void*>(&objects)));
  const auto generated = std::make_unique<char>();  // what no object holds is the program's
  EXPECT_FALSE(objects().allocates_privately(generated.get()));
  EXPECT_FALSE(objects().is_from_start(generated.get()));
  EXPECT_EQ(objects().late_library(), nullptr);
}

// In a child: the library would be there in later tests, too.
TEST(Objects, ALibraryThatIsOpenedAfterTheyHaveSettledIsSeen) {
  const auto opens = [] {
    const auto table = std::make_unique<ObjectTable>();
    if (!table->scan(reinterpret_cast<const void*>(&objects))) std::exit(1);
    table->settle();
    if (table->late_library() != nullptr) std::exit(2);
    if (dlopen("libcrypt.so.1", RTLD_NOW) == nullptr) std::exit(3);
    const char* const late = table->late_library();
    std::exit(late != nullptr && std::string_view(late).ends_with("/libcrypt.so.1") ? 0 : 4);
  };
  EXPECT_EXIT(opens(), testing::ExitedWithCode(0), "");
}

TEST(Objects, WhatIsAcceptedIsNotLateButWhatComesAfterIs) {
  const auto opens = [] {
    const auto table = std::make_unique<ObjectTable>();
    if (!table->scan(reinterpret_cast<const void*>(&objects))) std::exit(1);
    table->settle();
    if (dlopen("libcrypt.so.1", RTLD_NOW) == nullptr) std::exit(2);
    table->accept_opened();
    if (table->late_library() != nullptr) std::exit(3);
    if (dlopen("libexpat.so.1", RTLD_NOW) == nullptr) std::exit(4);
    const char* const late = table->late_library();
    std::exit(late != nullptr && std::string_view(late).ends_with("/libexpat.so.1") ? 0 : 5);
  };
  EXPECT_EXIT(opens(), testing::ExitedWithCode(0), "");
}

TEST(Objects, RolesByName) {
  EXPECT_EQ(role_of_library("/usr/lib/x86_64-linux-gnu/libgomp.so.1"), ObjectRole::kRuntime);
  EXPECT_EQ(role_of_library("libomp.so.5"), ObjectRole::kRuntime);
  EXPECT_EQ(role_of_library("/lib64/ld-linux-x86-64.so.2"), ObjectRole::kRuntime);
  EXPECT_EQ(role_of_library("/usr/lib/libucp.so.0"), ObjectRole::kRuntime);
  EXPECT_EQ(role_of_library("/lib/libc.so.6"), ObjectRole::kSystem);
  EXPECT_EQ(role_of_library("/lib/libcrypt.so.1"), ObjectRole::kProgram);
  EXPECT_EQ(role_of_library("/lib/libstdc++.so.6"), ObjectRole::kProgram);
  EXPECT_EQ(role_of_library(""), ObjectRole::kProgram);
}

TEST(Image, EqualDescriptionsCompareEqual) {
  const std::string mine = describe_image(objects());
  EXPECT_TRUE(compare_images(mine, mine, NodeId{0}).ok());
  EXPECT_NE(mine.find("libc.so.6"), std::string::npos);
}

TEST(Image, TheSentenceNamesTheFileThatDiffers) {
  const std::string here = "app\t1000\t2000\tabc\t/x/app\nlibm\t3000\t4000\tdef\t/x/libm\n";
  const auto sentence = [&](std::string there) {
    const Status same = compare_images(here, there, NodeId{0});
    return same.ok() ? std::string() : same.error().message;
  };
  EXPECT_EQ(sentence("app\t1000\t2000\tabc\t/x/app\nlibm\t3000\t4000\t123\t/x/libm\n"),
            "/x/libm differs from that of node 0 (build id def, there 123)");
  EXPECT_EQ(sentence("app\t1000\t2000\tabc\t/x/app\nlibm\t5000\t6000\tdef\t/x/libm\n"),
            "/x/libm is loaded at 0x3000-0x4000, on node 0 at 0x5000-0x6000");
  EXPECT_EQ(sentence("app\t1000\t2000\tabc\t/x/app\n"), "/x/libm is loaded on this node only");
  EXPECT_EQ(sentence("app\t1000\t2000\tabc\t/x/app\nlibz\t3000\t4000\tdef\t/x/libz\n"),
            "this node has loaded /x/libm where node 0 has /x/libz");
}

}  // namespace
}  // namespace amasia::omp
