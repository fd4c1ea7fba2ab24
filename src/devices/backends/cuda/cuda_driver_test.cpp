// SPDX-License-Identifier: Apache-2.0
// Our declarations of CUDA's functions, held against its headers where those are installed.
#include "devices/backends/cuda/cuda_driver.hpp"

#include <gtest/gtest.h>

#include <vector>

#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
// Apart from ours, which have the same names in another namespace.
namespace theirs {
#include <cuda.h>
#include <nvrtc.h>
}  // namespace theirs
#define AMASIA_HAS_CUDA_HEADERS 1
#endif

namespace amasia::devices::cuda {
namespace {

#ifdef AMASIA_HAS_CUDA_HEADERS

// What the calling convention sees: how many parameters, and the size of each and of the result.
template <typename R, typename... Parameters>
std::vector<std::size_t> sizes_of(R (*)(Parameters...)) {
  return {sizeof(R), sizeof(Parameters)...};
}
// Only the type is used: nothing of CUDA is linked.
#define AMASIA_THEIRS(symbol) static_cast<decltype(&theirs::symbol)>(nullptr)

TEST(CudaDeclarations, are_called_as_in_the_headers) {
  const Driver ours;
  const Compiler compiler;
#define AMASIA_CHECK_SIZES(member, symbol, parameters) \
  EXPECT_EQ(sizes_of(ours.member), sizes_of(AMASIA_THEIRS(symbol))) << #symbol;
  AMASIA_CUDA_FUNCTIONS(AMASIA_CHECK_SIZES)
  AMASIA_CUDA_OPTIONAL_FUNCTIONS(AMASIA_CHECK_SIZES)
#undef AMASIA_CHECK_SIZES
#define AMASIA_CHECK_SIZES(member, symbol, parameters) \
  EXPECT_EQ(sizes_of(compiler.member), sizes_of(AMASIA_THEIRS(symbol))) << #symbol;
  AMASIA_NVRTC_FUNCTIONS(AMASIA_CHECK_SIZES)
#undef AMASIA_CHECK_SIZES
#undef AMASIA_THEIRS
}

TEST(CudaDeclarations, a_node_of_a_graph_is_as_in_the_headers) {
  using Theirs = theirs::CUDA_KERNEL_NODE_PARAMS_v2;
  EXPECT_EQ(sizeof(KernelNode), sizeof(Theirs));
  EXPECT_EQ(offsetof(KernelNode, grid), offsetof(Theirs, gridDimX));
  EXPECT_EQ(offsetof(KernelNode, block), offsetof(Theirs, blockDimX));
  EXPECT_EQ(offsetof(KernelNode, shared_bytes), offsetof(Theirs, sharedMemBytes));
  EXPECT_EQ(offsetof(KernelNode, parameters), offsetof(Theirs, kernelParams));
  EXPECT_EQ(offsetof(KernelNode, context), offsetof(Theirs, ctx));
}

TEST(CudaDeclarations, constants_are_those_of_the_headers) {
  EXPECT_EQ(kSuccess, theirs::CUDA_SUCCESS);
  EXPECT_EQ(kInvalidValue, theirs::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(kOutOfMemory, theirs::CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kNotFound, theirs::CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(kNotReady, theirs::CUDA_ERROR_NOT_READY);
  EXPECT_EQ(kLaunchOutOfResources, theirs::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(kMaxThreadsPerBlock, theirs::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(kMaxBlockDimX, theirs::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  EXPECT_EQ(kMultiprocessorCount, theirs::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(kComputeCapabilityMajor, theirs::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(kComputeCapabilityMinor, theirs::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(kFunctionMaxThreadsPerBlock, theirs::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(kContextBlockingSync, unsigned{theirs::CU_CTX_SCHED_BLOCKING_SYNC});
  EXPECT_EQ(kStreamNonBlocking, unsigned{theirs::CU_STREAM_NON_BLOCKING});
  EXPECT_EQ(kEventDefault, unsigned{theirs::CU_EVENT_DEFAULT});
  EXPECT_EQ(kEventDisableTiming, unsigned{theirs::CU_EVENT_DISABLE_TIMING});
}

#endif

}  // namespace
}  // namespace amasia::devices::cuda
