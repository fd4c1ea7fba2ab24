// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/cuda/cuda_launch.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace amasia::devices::cuda {
namespace {

constexpr std::uint64_t kMostIn[3] = {1024, 1024, 64};

Work work_of(std::vector<std::uint64_t> global, std::vector<std::uint64_t> local = {}) {
  Work work;
  work.dimensions = static_cast<std::uint32_t>(global.size());
  std::copy(global.begin(), global.end(), work.global);
  std::copy(local.begin(), local.end(), work.local);
  return work;
}

TEST(CudaLaunch, parameters_of_another_number_or_size_are_refused) {
  using Kind = ArgumentKind;
  const ArgumentShape shapes[] = {{Kind::kBuffer, 0}, {Kind::kLocal, 512}, {Kind::kValue, 4}};
  const std::vector<std::size_t> sizes = parameter_sizes(shapes);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 4}));
  EXPECT_EQ(wrong_parameters("f", sizes, sizes).failure, Failure::kNone);
  const std::size_t wide[] = {8, 8}, more[] = {8, 4, 4};
  EXPECT_EQ(wrong_parameters("f", sizes, wide).message,
            "parameter 1 of the kernel 'f' takes 4 bytes, not 8");
  EXPECT_EQ(wrong_parameters("f", sizes, more).message, "the kernel 'f' takes 2 arguments, not 3");
  EXPECT_EQ(wrong_parameters("f", more, sizes).failure, Failure::kArguments);
}

TEST(CudaShape, covers_exactly_the_work_items) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> global;
    for (std::size_t d = 0, n = 1 + random() % 3; d < n; ++d) global.push_back(1 + random() % 3000);
    const Work work = work_of(global);
    const auto shape = shape_of(work, 1 + random() % 1024, kMostIn);
    ASSERT_TRUE(shape) << shape.error().message;
    std::uint64_t threads = 1;
    for (int d = 0; d < 3; ++d) {
      EXPECT_EQ(std::uint64_t{shape.value().block[d]} * shape.value().grid[d], work.global[d]);
      EXPECT_LE(shape.value().block[d], kMostIn[d]);
      threads *= shape.value().block[d];
    }
    EXPECT_LE(threads, 256U);
  }
}

TEST(CudaShape, fills_blocks_where_sizes_can_be_divided) {
  const auto one = shape_of(work_of({1 << 20}), 1024, kMostIn);
  EXPECT_EQ(one.value().block[0], 256U);
  const auto two = shape_of(work_of({64, 64}), 1024, kMostIn);
  EXPECT_EQ(two.value().block[0] * two.value().block[1], 256U);
  const auto prime = shape_of(work_of({10007}), 1024, kMostIn);
  EXPECT_EQ(prime.value().block[0], 1U);
}

TEST(CudaShape, takes_local_sizes_as_they_are_and_names_what_cannot_be) {
  const auto as_is = shape_of(work_of({128, 64}, {16, 8}), 1024, kMostIn);
  ASSERT_TRUE(as_is);
  EXPECT_EQ(as_is.value().block[1], 8U);
  EXPECT_EQ(as_is.value().grid[0], 8U);
  const auto message = [](const Work& work) {
    const auto shape = shape_of(work, 1024, kMostIn);
    return shape ? std::string("allowed") : shape.error().message;
  };
  EXPECT_NE(message(work_of({100}, {7})).find("7 for 100 work items"), std::string::npos);
  EXPECT_NE(message(work_of({4096}, {2048})).find("at most 1024"), std::string::npos);
  EXPECT_NE(message(work_of({64, 64}, {64, 64})).find("4096 threads"), std::string::npos);
  EXPECT_NE(message(work_of({1, 70000}, {1, 1})).find("70000 blocks"), std::string::npos);
  Work shifted = work_of({64});
  shifted.offset[0] = 3;
  EXPECT_NE(message(shifted).find("global offset of 3"), std::string::npos);
}

TEST(CudaParameters, are_pointers_to_aligned_copies_in_order) {
  Parameters parameters;
  std::vector<std::vector<char>> values;
  std::mt19937 random(2);
  for (std::size_t size = 1; size <= 40; ++size) {
    values.emplace_back(size);
    for (char& byte : values.back()) byte = static_cast<char>(random());
    std::vector<char> gone = values.back();
    parameters.add_value(gone.data(), size);
    std::fill(gone.begin(), gone.end(), 0);
  }
  parameters.add_local(100);
  parameters.add_local(1);
  parameters.add_pointer(0x123456789abcdef0);
  EXPECT_EQ(parameters.sizes().size(), 41U);
  EXPECT_EQ(parameters.shared_bytes(), 112U + 16U);
  void** const pointers = parameters.pointers();
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointers[i]) % 8, 0U);
    EXPECT_EQ(parameters.sizes()[i], values[i].size());
    EXPECT_EQ(std::memcmp(pointers[i], values[i].data(), values[i].size()), 0);
  }
  EXPECT_EQ(*static_cast<std::uint64_t*>(pointers[40]), 0x123456789abcdef0U);
}

TEST(CudaOptions, are_split_at_blanks_that_are_not_quoted) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_options(""), Words{});
  EXPECT_EQ(split_options("  -DX=1\t-O3 "), (Words{"-DX=1", "-O3"}));
  EXPECT_EQ(split_options("-DS=\"a b\" '-I /x y' ''"), (Words{"-DS=a b", "-I /x y", ""}));
}

TEST(CudaTarget, is_the_devices_own_code_or_ptx_for_an_older_one) {
  const int supported[] = {75, 80, 90, 100};
  EXPECT_EQ(target_for(90, supported)->option, "--gpu-architecture=sm_90");
  EXPECT_FALSE(target_for(90, supported)->is_ptx);
  EXPECT_EQ(target_for(89, supported)->option, "--gpu-architecture=compute_80");
  EXPECT_TRUE(target_for(89, supported)->is_ptx);
  EXPECT_FALSE(target_for(70, supported));
  EXPECT_FALSE(target_for(90, {}));
}

TEST(CudaMemorySizes, are_few_and_never_smaller) {
  std::set<Bytes> sizes;
  for (Bytes size = 1; size < 300 * base::kKiB; size += 7) {
    const Bytes rounded = rounded_size(size);
    EXPECT_GE(rounded, size);
    if (size > 256) {
      EXPECT_LT(rounded, 2 * size);
    }
    EXPECT_EQ(rounded_size(rounded), rounded);
    sizes.insert(rounded);
  }
  EXPECT_LE(sizes.size(), 16U);
}

}  // namespace
}  // namespace amasia::devices::cuda
