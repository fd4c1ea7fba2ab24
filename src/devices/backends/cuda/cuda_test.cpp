// SPDX-License-Identifier: Apache-2.0
// The compiler alone wherever it is installed; works where there is a GPU.
#include "devices/backends/cuda/cuda.hpp"

#include <gtest/gtest.h>


#include "devices/backends/cuda/cuda_program.hpp"
#include "devices/backends/scenario_works.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {
namespace {

// Memory of a group in CUDA is one array; the argument only says how large it is.
constexpr const char* kGroupSum = R"(
KERNEL void group_sum(const int* x, int* sums) {
  extern __shared__ int part[];
  const int me = LOCAL_ID(0);
  part[me] = x[GLOBAL_ID(0)];
  for (int half_size = blockDim.x / 2; half_size > 0; half_size /= 2) {
    BARRIER;
    if (me < half_size) part[me] += part[me + half_size];
  }
  if (me == 0) sums[blockIdx.x] = part[0];
}
)";

ProgramCode cuda_code(const std::string& text, const std::string& options = "-DREAL=float") {
  ProgramCode code;
  code.kind = ProgramKind::kCudaSource;
  code.code = scenario::kCudaWords + text;
  code.options = options;
  return code;
}

class CudaCompiler : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = cuda::load_compiler();
    if (!loaded) GTEST_SKIP() << loaded.error().message;
    compiler = loaded.value();
  }
  const cuda::Compiler* compiler = nullptr;
};

TEST_F(CudaCompiler, makes_code_for_a_gpu_that_is_not_here) {
  Outcome outcome;
  for (const char* const real : {"-DREAL=float", "-DREAL=double"}) {
    const auto cubin =
        cuda::compile(*compiler, cuda_code(scenario::kKernels, real), 90, &outcome);
    EXPECT_TRUE(cubin.starts_with("\177ELF")) << outcome.message;
  }
  // A GPU newer than the compiler gets PTX, which its driver compiles.
  const auto ptx = cuda::compile(*compiler, cuda_code(scenario::kKernels), 9999, &outcome);
  EXPECT_NE(ptx.find(".entry saxpy"), std::string::npos) << outcome.message;
  EXPECT_TRUE(cuda::compile(*compiler, cuda_code(scenario::kKernels), 20, &outcome).empty());
  EXPECT_EQ(outcome.failure, Failure::kUnsupported);
}

TEST_F(CudaCompiler, gives_its_log_for_a_program_that_does_not_build) {
  Outcome outcome;
  ProgramCode code = cuda_code("KERNEL void f() { no_such_thing(); }");
  code.path = "broken.cu";
  EXPECT_TRUE(cuda::compile(*compiler, code, 90, &outcome).empty());
  EXPECT_EQ(outcome.failure, Failure::kBuild);
  EXPECT_NE(outcome.message.find("no_such_thing"), std::string::npos) << outcome.message;
  EXPECT_NE(outcome.message.find("broken.cu"), std::string::npos) << outcome.message;
}

TEST_F(CudaCompiler, compiles_once_for_each_device_and_then_reads_from_disk) {
  const tests::TemporaryFolder folder("cuda-test");
  ProgramCache cache(folder / "programs");
  Outcome outcome;
  const ProgramCode code = cuda_code(scenario::kKernels);
  const auto first = cuda::compile_cached(code, 90, cache, &outcome);
  EXPECT_FALSE(first.empty()) << outcome.message;
  EXPECT_EQ(cuda::compile_cached(code, 90, cache, &outcome), first);
  EXPECT_EQ(cache.hits(), 1U);
  EXPECT_NE(cuda::compile_cached(code, 80, cache, &outcome), first);
  EXPECT_EQ(cache.hits(), 1U);
}

struct Cuda {
  Cuda() {
    backend = make_cuda_backend(cache, &why);
    language.source = ProgramKind::kCudaSource;
    language.words = scenario::kCudaWords;
    language.group_sum = kGroupSum;
  }
  ProgramCache cache{""};
  std::string why;
  std::unique_ptr<Backend> backend;
  scenario::Language language;
};

Cuda& cuda_here() {
  static Cuda one;
  return one;
}

class CudaWorks : public testing::TestWithParam<scenario::Body> {};

TEST_P(CudaWorks, on_each_gpu) {
  if (cuda_here().backend == nullptr) GTEST_SKIP() << cuda_here().why;
  Backend& backend = *cuda_here().backend;
  for (LocalDevice device = 0; device < backend.devices().size(); ++device) {
    SCOPED_TRACE(backend.devices()[device].identity);
    GetParam().check(scenario::Bench{backend, device, cuda_here().language});
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaWorks, testing::ValuesIn(scenario::kBodies),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace amasia::devices
