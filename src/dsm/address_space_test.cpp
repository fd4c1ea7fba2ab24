// SPDX-License-Identifier: Apache-2.0
#include "dsm/address_space.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace amasia::dsm {
namespace {

constexpr std::uintptr_t kTestBase = kManagedBase;

AddressSpace::Settings three_nodes(std::uint16_t self) {
  return {.self = NodeId{self},
          .node_count = 3,
          .base = kTestBase,
          .span = 10 * base::kGiB,
          .globals_span = base::kGiB};
}

class AddressSpaceTest : public ::testing::Test {
 protected:
  ~AddressSpaceTest() override { space_.release(); }
  AddressSpace space_;
};

TEST_F(AddressSpaceTest, ArenasAreEqualWholeGibibytes) {
  ASSERT_TRUE(space_.map(three_nodes(0)).ok());
  for (std::uint16_t k = 0; k < 3; ++k) {
    const AddressRange arena = space_.arena(NodeId{k});
    EXPECT_EQ(arena.begin, kTestBase + k * 3 * base::kGiB);
    EXPECT_EQ(arena.size(), 3 * base::kGiB);
    EXPECT_EQ(space_.heap(NodeId{k}).begin, arena.begin);
    EXPECT_EQ(space_.heap(NodeId{k}).end, space_.stacks(NodeId{k}).begin);
    EXPECT_EQ(space_.stacks(NodeId{k}).size(), arena.size() / 8);
    EXPECT_EQ(space_.home_of(*space_.page_of(arena.begin)), NodeId{k});
    EXPECT_EQ(space_.home_of(*space_.page_of(arena.end - 1)), NodeId{k});
  }
}

TEST_F(AddressSpaceTest, PagesAndAddressesAreInverse) {
  ASSERT_TRUE(space_.map(three_nodes(0)).ok());
  for (std::uint64_t offset = 0; offset < 9 * base::kGiB; offset += 123456789) {
    const std::uintptr_t address = kTestBase + offset;
    const auto page = space_.page_of(address);
    ASSERT_TRUE(page.has_value());
    EXPECT_TRUE(space_.is_valid(*page));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(space_.address_of(*page)),
              base::round_down(address, base::kPageSize));
  }
  EXPECT_FALSE(space_.page_of(kTestBase - 1).has_value());
  EXPECT_FALSE(space_.page_of(kTestBase + 9 * base::kGiB).has_value());
  EXPECT_FALSE(space_.is_valid(PageIndex{space_.page_limit()}));
  EXPECT_FALSE(space_.is_valid(PageIndex{0}));  // no globals yet
}

TEST_F(AddressSpaceTest, ViewAndAliasAreTheSameBytes) {
  ASSERT_TRUE(space_.map(three_nodes(1)).ok());
  auto* const view = reinterpret_cast<char*>(space_.heap(NodeId{1}).begin);
  std::strcpy(view, "seen twice");
  EXPECT_STREQ(reinterpret_cast<char*>(space_.alias_of(*space_.page_of(view))), "seen twice");
}

TEST_F(AddressSpaceTest, GlobalsKeepTheirContentAtTheOrigin) {
  ASSERT_TRUE(space_.map(three_nodes(0)).ok());
  alignas(base::kPageSize) static char first[2 * base::kPageSize];
  alignas(base::kPageSize) static char second[base::kPageSize];
  std::strcpy(first + 4096, "first");
  std::strcpy(second, "second");
  const auto range = [](char* at, std::size_t size) {
    return AddressRange{reinterpret_cast<std::uintptr_t>(at),
                        reinterpret_cast<std::uintptr_t>(at) + size};
  };
  ASSERT_TRUE(space_.add_globals(range(first, 2 * 4096)).ok());
  ASSERT_TRUE(space_.add_globals(range(second, 4096)).ok());
  EXPECT_STREQ(first + 4096, "first");
  EXPECT_STREQ(second, "second");
  EXPECT_EQ(space_.page_of(first + 4097), PageIndex{1});
  EXPECT_EQ(space_.page_of(second), PageIndex{2});
  EXPECT_EQ(space_.home_of(PageIndex{2}), base::kOrigin);
  std::strcpy(second, "changed");
  EXPECT_STREQ(reinterpret_cast<char*>(space_.alias_of(PageIndex{2})), "changed");
  EXPECT_EQ(space_.within_segment({PageIndex{0}, 3}), (PageRun{PageIndex{0}, 2}));
  EXPECT_TRUE(space_.is_valid(PageRun{PageIndex{1}, 1}));
  EXPECT_FALSE(space_.is_valid(PageRun{PageIndex{1}, 2}));
}

// A quarter of an arena.
Bytes even_offset(const AddressSpace& space) { return space.arena(base::kOrigin).size() / 4; }

TEST_F(AddressSpaceTest, StripesOfTheOriginsHeapBelongToTheOthersInTurn) {
  ASSERT_TRUE(space_.map(three_nodes(0)).ok());
  const AddressRange spread = space_.spread();
  const PageIndex first = *space_.page_of(spread.begin);
  constexpr PageCount kPages = kStripe / base::kPageSize;
  EXPECT_EQ(spread.end, space_.heap(base::kOrigin).end);
  EXPECT_EQ(spread.size() % kStripe, 0U);
  const auto home = [&](PageCount page) {
    return space_.home_of(PageIndex{first.value + page}).value;
  };
  EXPECT_EQ(home(0), 1U);
  EXPECT_EQ(home(kPages - 1), 1U);
  EXPECT_EQ(home(kPages), 2U);
  EXPECT_EQ(home(2 * kPages), 1U);
  const AddressRange even = space_.even_spread();
  EXPECT_EQ(even.end, spread.end);
  EXPECT_EQ(even.begin, spread.begin + even_offset(space_));
  const PageIndex first_even = *space_.page_of(even.begin);
  std::array<int, 3> stripes{};
  for (PageCount stripe = 0; stripe < 9; ++stripe) {
    const PageIndex page{first_even.value + stripe * kPages};
    EXPECT_TRUE(space_.is_spread(page));
    ++stripes[space_.home_of(page).value];
  }
  EXPECT_EQ(stripes, (std::array<int, 3>{3, 3, 3}));
  EXPECT_NE(space_.home_of(PageIndex{first_even.value - 1}), base::kOrigin);
  EXPECT_EQ(space_.arena_of(PageIndex{first.value + kPages}), base::kOrigin);
  for (const PageCount outside : {first.value - 1, space_.page_of(spread.end - 1)->value + 1}) {
    EXPECT_FALSE(space_.is_spread(PageIndex{outside}));
    EXPECT_EQ(space_.home_of(PageIndex{outside}), base::kOrigin);
  }
  EXPECT_TRUE(space_.is_valid(PageRun{PageIndex{first.value + kPages}, kPages}));
  EXPECT_FALSE(space_.is_valid(PageRun{PageIndex{first.value + kPages - 1}, 2}));
  EXPECT_EQ(space_.within_segment({PageIndex{first.value - 3}, 100}).count, 3U);
  EXPECT_EQ(space_.within_segment({PageIndex{first.value + 5}, kPages}).count, kPages - 5);
}

TEST_F(AddressSpaceTest, RefusesWhatItCannotHold) {
  EXPECT_EQ(space_.add_globals({0x1000, 0x2000}).errno_value, EINVAL);
  auto settings = three_nodes(0);
  settings.span = base::kGiB;
  EXPECT_EQ(space_.map(settings).errno_value, EINVAL);
  settings = three_nodes(3);
  EXPECT_EQ(space_.map(settings).errno_value, EINVAL);
  ASSERT_TRUE(space_.map(three_nodes(0)).ok());
  AddressSpace in_the_way;
  EXPECT_EQ(in_the_way.map(three_nodes(0)).errno_value, EEXIST);
  EXPECT_EQ(space_.add_globals({0x1001, 0x2000}).errno_value, EINVAL);
}

}  // namespace
}  // namespace amasia::dsm
