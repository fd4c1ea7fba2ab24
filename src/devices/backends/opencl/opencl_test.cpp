// SPDX-License-Identifier: Apache-2.0
// On the devices of PoCL: one with threads of its own and two that run in the caller's.
#include "devices/backends/opencl/direct_copies.hpp"
#include "devices/backends/opencl/opencl.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "devices/backends/scenario_works.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::devices {
namespace {

using scenario::Bench;

// PoCL reads this when it is first asked for devices.
[[maybe_unused]] const int kDevicesWanted = ::setenv("POCL_DEVICES", "pthread basic basic", 0);

// One back end for all tests, as in a program: drivers take long to start.
struct Opencl {
  Opencl() {
    cache = std::make_unique<ProgramCache>(folder / "programs");
    backend = make_opencl_backend(*cache, &why);
    language.words = std::string("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n") +
                     scenario::kOpenclWords;
    language.group_sum = scenario::kOpenclGroupSum;
  }
  const tests::TemporaryFolder folder{"opencl-test"};
  std::string why;
  std::unique_ptr<ProgramCache> cache;
  std::unique_ptr<Backend> backend;
  scenario::Language language;
};

Opencl& opencl() {
  static Opencl one;
  return one;
}

class OpenclWorks : public testing::TestWithParam<scenario::Body> {};

TEST_P(OpenclWorks, on_each_device) {
  if (opencl().backend == nullptr) GTEST_SKIP() << opencl().why;
  Backend& backend = *opencl().backend;
  for (LocalDevice device = 0; device < backend.devices().size(); ++device) {
    SCOPED_TRACE(backend.devices()[device].identity);
    GetParam().check(Bench{backend, device, opencl().language});
  }
}

INSTANTIATE_TEST_SUITE_P(Opencl, OpenclWorks, testing::ValuesIn(scenario::kBodies),
                         [](const auto& one) { return std::string(one.param.name); });

// PoCL's devices call back; those of GPUs are looked at, as these are here.
TEST(OpenclEnds, may_be_looked_for) {
  if (opencl().backend == nullptr) GTEST_SKIP() << opencl().why;
  std::string why;
  const auto backend = make_opencl_backend(*opencl().cache, &why, opencl::Ends::kLookedFor);
  ASSERT_NE(backend, nullptr) << why;
  for (LocalDevice device = 0; device < backend->devices().size(); ++device) {
    const Bench bench{*backend, device, opencl().language};
    for (const auto& body : scenario::kBodies) {
      SCOPED_TRACE(backend->devices()[device].identity + ", " + body.name);
      body.check(bench);
    }
  }
}

// On such devices brief kernels are given sizes of groups, where the program gives none; kernels
// that have their own keep them.
TEST(OpenclEnds, of_brief_kernels_looked_for_have_groups_chosen) {
  if (opencl().backend == nullptr) GTEST_SKIP() << opencl().why;
  std::string why;
  const auto backend = make_opencl_backend(*opencl().cache, &why, opencl::Ends::kLookedFor);
  ASSERT_NE(backend, nullptr) << why;
  const Bench bench{*backend, 0, opencl().language};
  const auto source = [&](const char* name) {
    return "void " + std::string(name) + "(GLOBAL int* x) { if (get_local_id(0) == 0) "
           "x[get_group_id(0)] = get_local_size(0); }";
  };
  const std::string both = "KERNEL " + source("left") +
                           "KERNEL __attribute__((reqd_work_group_size(4, 1, 1))) " +
                           source("fixed");
  alignas(4096) static int sizes[1000];
  Outcome outcome;
  const auto memory = backend->allocate(0, sizeof sizes, sizes, &outcome);
  const KernelArgument argument = scenario::buffer(memory.get());
  const auto size_of = [&](LoadedKernel& kernel) {
    const Copy copy{memory.get(), 0, sizes, sizeof sizes};
    Work work;
    work.kernel = &kernel;
    work.global[0] = 1000;
    work.arguments = {&argument, 1};
    work.to_host = {&copy, 1};
    scenario::expect_done(scenario::run(*backend, work));
    return sizes[0];
  };
  const auto load = [&](const char* name) {
    auto kernel = backend->load(0, bench.code("float", both), name, 1, &outcome);
    EXPECT_NE(kernel, nullptr) << outcome.message;
    return kernel;
  };
  const auto left = load("left"), fixed = load("fixed");
  ASSERT_TRUE(left != nullptr && fixed != nullptr);
  // Until it is seen to be brief.
  const Nanos deadline = os::monotonic_now() + 20 * base::kSecond;
  while (size_of(*left) != 250 && os::monotonic_now() < deadline) continue;
  EXPECT_LT(os::monotonic_now(), deadline) << "groups of " << sizes[0];
  for (int i = 0; i < 100; ++i) EXPECT_EQ(size_of(*fixed), 4);
}

class OpenclTest : public testing::Test {
 protected:
  void SetUp() override {
    if (opencl().backend == nullptr) GTEST_SKIP() << opencl().why;
  }
  Backend& backend() { return *opencl().backend; }
  Bench bench(LocalDevice device = 0) { return {backend(), device, opencl().language}; }
};

TEST_F(OpenclTest, devices_have_names_of_their_own_that_stay) {
  std::set<std::string> identities;
  for (const DeviceDescription& device : backend().devices()) {
    EXPECT_TRUE(identities.insert(device.identity).second) << device.identity;
    EXPECT_LE(device.identity.size(), kMaxIdentity);
    EXPECT_EQ(device.backend, "opencl");
    EXPECT_GT(device.memory, 0U);
    EXPECT_GT(device.max_work_group, 0U);
    EXPECT_GT(device.max_work_sizes[0], 0U);
  }
  ProgramCache none("");
  std::string why;
  const auto second = make_opencl_backend(none, &why);
  ASSERT_NE(second, nullptr) << why;
  ASSERT_EQ(second->devices().size(), backend().devices().size());
  for (std::size_t i = 0; i < second->devices().size(); ++i) {
    EXPECT_EQ(second->devices()[i].identity, backend().devices()[i].identity);
  }
}

// Kernels would never end there, as the driver's threads are the parent's.
TEST_F(OpenclTest, devices_that_run_kernels_in_who_submits_are_found) {
  if (std::string_view(std::getenv("POCL_DEVICES")) != "pthread basic basic" ||
      backend().devices().size() != 3) {
    GTEST_SKIP() << "other devices were asked for";
  }
  int found = 0;
  for (LocalDevice device = 0; device < 3; ++device) found += backend().runs_in_caller(device);
  EXPECT_EQ(found, 2);
}

TEST_F(OpenclTest, a_child_of_fork_is_told_that_the_driver_is_the_parents) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ProgramCache none("");
    std::string why;
    const bool left_out = make_opencl_backend(none, &why) == nullptr;
    ::_exit(left_out && why.find("before it forked") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(OpenclTest, a_global_offset_is_where_ids_begin) {
  const auto kernel = bench().load("increment", 1);
  std::vector<int> x(100);
  const auto dx = bench().memory<int>(x.size());
  const KernelArgument argument = scenario::buffer(dx.get());
  const Copy in = scenario::copy(dx.get(), x);
  Work work;
  work.kernel = kernel.get();
  work.global[0] = 10;
  work.offset[0] = 20;
  work.arguments = {&argument, 1};
  work.to_device = work.to_host = {&in, 1};
  scenario::expect_done(scenario::run(backend(), work));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(x[i], i >= 20 && i < 30 ? 1 : 0) << i;
}

TEST_F(OpenclTest, a_value_of_another_size_is_refused_by_name) {
  const auto kernel = bench().load("saxpy", 4);
  const auto memory = bench().memory<float>(16);
  const double wide = 1;
  const Outcome outcome =
      bench().launch(kernel.get(),
                     {scenario::buffer(memory.get()), scenario::buffer(memory.get()),
                      scenario::value(wide), scenario::buffer(memory.get())},
                     {16}, {}, {});
  EXPECT_EQ(outcome.failure, Failure::kArguments);
  EXPECT_NE(outcome.message.find("argument 2 of the kernel 'saxpy'"), std::string::npos)
      << outcome.message;
}

TEST_F(OpenclTest, a_wrong_number_of_arguments_is_refused_when_the_kernel_is_loaded) {
  Outcome outcome;
  EXPECT_EQ(backend().load(0, bench().code(), "saxpy", 3, &outcome), nullptr);
  EXPECT_EQ(outcome.failure, Failure::kArguments);
  EXPECT_NE(outcome.message.find("takes 4 arguments, not 3"), std::string::npos)
      << outcome.message;
}

TEST_F(OpenclTest, wrong_arguments_are_known_before_a_launch) {
  const auto kernel = bench().load("saxpy", 4);
  using Kind = ArgumentKind;
  const ArgumentShape buffer{Kind::kBuffer, 0}, wide{Kind::kValue, 8}, value{Kind::kValue, 4};
  const auto refused = [&](std::vector<ArgumentShape> shapes) {
    return kernel->refuses(std::span<const ArgumentShape>(shapes)).message;
  };
  EXPECT_EQ(refused({buffer, buffer, value, buffer}), "");
  EXPECT_NE(refused({buffer, buffer, wide, buffer}).find("argument 2 of the kernel 'saxpy'"),
            std::string::npos);
  EXPECT_NE(refused({buffer, value, value, buffer}).find("argument 1 of the kernel 'saxpy'"),
            std::string::npos);
  EXPECT_NE(refused({buffer, buffer, value}).find("takes 4 arguments, not 3"), std::string::npos);
  EXPECT_EQ(kernel->refuses(4).failure, Failure::kNone);
  EXPECT_EQ(kernel->refuses(5).failure, Failure::kArguments);
}

TEST_F(OpenclTest, aligned_memory_of_the_host_is_used_in_place) {
  for (LocalDevice device = 0; device < backend().devices().size(); ++device) {
    if (!backend().devices()[device].shares_host_memory) continue;
    alignas(4096) static int x[1024];
    std::fill(std::begin(x), std::end(x), 7);
    Outcome outcome;
    const auto memory = backend().allocate(device, sizeof x, x, &outcome);
    ASSERT_NE(memory, nullptr) << outcome.message;
    const auto kernel = bench(device).load("increment", 1);
    const std::vector<Copy> copies{{memory.get(), 0, x, sizeof x}};
    scenario::expect_done(bench(device).launch(kernel.get(), {scenario::buffer(memory.get())},
                                               {1024}, copies, {}));
    EXPECT_EQ(std::count(std::begin(x), std::end(x), 8), 1024);  // nothing was copied back
  }
}

// Of a CPU small copies are ours and large ones the driver's, of one work, too.
TEST_F(OpenclTest, copies_of_any_size_are_made) {
  for (LocalDevice device = 0; device < backend().devices().size(); ++device) {
    const auto kernel = bench(device).load("increment", 1);
    const std::size_t most = opencl::DirectCopies::kMost / sizeof(int);
    for (const std::size_t count : {std::size_t{1}, most, most + 1, 2 * most}) {
      std::vector<int> x(count + 1, 7), half(count + 1, 0);
      int* const misaligned = x.data() + 1;
      Outcome outcome;
      const auto memory =
          backend().allocate(device, count * sizeof(int), misaligned, &outcome);
      ASSERT_NE(memory, nullptr) << outcome.message;
      const std::vector<Copy> in{{memory.get(), 0, misaligned, count * sizeof(int)}};
      const Bytes rest = (count - count / 2) * sizeof(int), offset = count / 2 * sizeof(int);
      const std::vector<Copy> out{{memory.get(), 0, misaligned, count * sizeof(int)},
                                  {memory.get(), offset, half.data(), rest}};
      scenario::expect_done(bench(device).launch(
          kernel.get(), {scenario::buffer(memory.get())}, {count}, in, out));
      EXPECT_EQ(std::count(x.begin() + 1, x.end(), 8), static_cast<std::ptrdiff_t>(count));
      EXPECT_EQ(x[0], 7);
      EXPECT_EQ(std::count(half.begin(), half.end(), 8),
                static_cast<std::ptrdiff_t>(rest / sizeof(int)));
    }
  }
}

// A device that runs kernels in the threads that submit them takes one thread at a time; bytes that
// are in the host's memory already are there without it.
TEST_F(OpenclTest, a_copy_in_place_does_not_wait_for_a_kernel_that_runs) {
  const std::string source =
      "KERNEL void until_told(GLOBAL volatile int* x) { x[1] = 1; while (x[0] == 0) {} }";
  LocalDevice device = 0;
  while (device < backend().devices().size() && !backend().runs_in_caller(device)) ++device;
  if (device == backend().devices().size()) GTEST_SKIP() << "no such device here";
  alignas(4096) static volatile int flags[2];
  alignas(4096) static int data[16];
  Outcome outcome;
  const auto kernel = backend().load(device, bench().code("float", source), "until_told", 1,
                                     &outcome);
  ASSERT_NE(kernel, nullptr) << outcome.message;
  const auto told = backend().allocate(device, sizeof flags, const_cast<int*>(flags), &outcome);
  const auto memory = backend().allocate(device, sizeof data, data, &outcome);
  const KernelArgument argument = scenario::buffer(told.get());
  Work work;
  work.device = device;
  work.kernel = kernel.get();
  work.arguments = {&argument, 1};
  std::thread running([&] { scenario::expect_done(scenario::run(backend(), work)); });
  while (flags[1] == 0) std::this_thread::yield();
  std::atomic<bool> copied{false};
  std::thread copying([&] {
    const Copy copy{memory.get(), 0, reinterpret_cast<std::byte*>(data), sizeof data};
    Work back;
    back.device = device;
    back.to_host = {&copy, 1};
    scenario::expect_done(scenario::run(backend(), back));
    copied.store(true);
  });
  const Nanos limit = os::monotonic_now() + 20 * base::kSecond;
  while (!copied.load() && os::monotonic_now() < limit) std::this_thread::yield();
  EXPECT_TRUE(copied.load()) << "the copy waits for the kernel";
  flags[0] = 1;
  running.join();
  copying.join();
}

TEST_F(OpenclTest, a_program_is_compiled_once_and_then_read_from_disk) {
  const std::string folder = opencl().folder / "read";
  const ProgramCode code = bench().code("float", "KERNEL void once(GLOBAL int* x) { x[0] = 77; }");
  for (int round = 0; round < 2; ++round) {
    ProgramCache cache(folder);
    std::string why;
    const auto fresh = make_opencl_backend(cache, &why);
    ASSERT_NE(fresh, nullptr) << why;
    Outcome outcome;
    const auto kernel = fresh->load(0, code, "once", 1, &outcome);
    ASSERT_NE(kernel, nullptr) << outcome.message;
    EXPECT_EQ(cache.hits(), round == 0 ? 0U : 1U);
    EXPECT_EQ(cache.stores(), round == 0 ? 1U : 0U);
    std::vector<int> x(1);
    const auto memory = fresh->allocate(0, sizeof(int), nullptr, &outcome);
    const Bench with{*fresh, 0, opencl().language};
    scenario::expect_done(with.launch(kernel.get(), {scenario::buffer(memory.get())}, {1}, {},
                                      {scenario::copy(memory.get(), x)}));
    EXPECT_EQ(x[0], 77);
  }
}

TEST_F(OpenclTest, a_cached_program_that_the_driver_refuses_is_compiled_again) {
  const std::string folder = opencl().folder / "refused";
  const ProgramCode code = bench().code("float", "KERNEL void again(GLOBAL int* x) { x[0] = 5; }");
  std::string file, why;
  Outcome outcome;
  {
    ProgramCache cache(folder);
    const auto fresh = make_opencl_backend(cache, &why);
    ASSERT_NE(fresh->load(0, code, "again", 1, &outcome), nullptr) << outcome.message;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) file = entry.path();
  }
  // The same key with rubbish for code.
  ProgramCache cache(folder);
  const auto fresh = make_opencl_backend(cache, &why);
  {
    std::FILE* const stored = std::fopen(file.c_str(), "rb");
    ASSERT_NE(stored, nullptr);
    std::string bytes(1 << 20, '\0');
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), stored));
    std::fclose(stored);
    std::uint64_t key_size = 0;
    constexpr std::size_t kHead = 17;
    std::memcpy(&key_size, bytes.data() + kHead, sizeof key_size);
    const std::string key = bytes.substr(kHead + 3 * sizeof key_size, key_size);
    ASSERT_TRUE(unpack_program(bytes, key).has_value());
    std::FILE* const changed = std::fopen(file.c_str(), "wb");
    const std::string rubbish = pack_program(key, "rubbish");
    std::fwrite(rubbish.data(), 1, rubbish.size(), changed);
    std::fclose(changed);
  }
  EXPECT_NE(fresh->load(0, code, "again", 1, &outcome), nullptr) << outcome.message;
  EXPECT_EQ(cache.hits(), 1U);
  EXPECT_EQ(cache.stores(), 1U);
}

TEST_F(OpenclTest, kernels_that_are_built_in_run) {
  Outcome outcome;
  const ProgramCode code{ProgramKind::kBuiltIn, "pocl.add.i8", "", ""};
  const auto kernel = backend().load(0, code, "pocl.add.i8", 3, &outcome);
  if (kernel == nullptr) GTEST_SKIP() << "not this driver: " << outcome.message;
  const std::vector<signed char> a(64, 30), b(64, 12);
  std::vector<signed char> c(64);
  const auto da = bench().memory<char>(64), db = bench().memory<char>(64),
             dc = bench().memory<char>(64);
  scenario::expect_done(bench().launch(
      kernel.get(),
      {scenario::buffer(da.get()), scenario::buffer(db.get()), scenario::buffer(dc.get())}, {64},
      {scenario::copy(da.get(), a), scenario::copy(db.get(), b)}, {scenario::copy(dc.get(), c)}));
  EXPECT_EQ(c, std::vector<signed char>(64, 42));
}

TEST_F(OpenclTest, a_binary_of_the_driver_can_be_loaded) {
  const std::string folder = opencl().folder / "binary";
  const ProgramCode code = bench().code("float", "KERNEL void nine(GLOBAL int* x) { x[0] = 9; }");
  Outcome outcome;
  std::string why, binary;
  ProgramCache cache(folder);
  const auto fresh = make_opencl_backend(cache, &why);
  ASSERT_NE(fresh->load(0, code, "nine", 1, &outcome), nullptr) << outcome.message;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::FILE* const stored = std::fopen(entry.path().c_str(), "rb");
    std::string bytes(entry.file_size(), '\0');
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), stored));
    std::fclose(stored);
    std::uint64_t key_size = 0;
    std::memcpy(&key_size, bytes.data() + 17, sizeof key_size);
    binary = *unpack_program(bytes, bytes.substr(17 + 24, key_size));
  }
  const ProgramCode compiled{ProgramKind::kBinary, binary, "", "", nullptr};
  const auto kernel = backend().load(0, compiled, "nine", 1, &outcome);
  ASSERT_NE(kernel, nullptr) << outcome.message;
  std::vector<int> x(1);
  const auto memory = bench().memory<int>(1);
  scenario::expect_done(bench().launch(kernel.get(), {scenario::buffer(memory.get())}, {1}, {},
                                       {scenario::copy(memory.get(), x)}));
  EXPECT_EQ(x[0], 9);
  EXPECT_EQ(backend().load(0, {ProgramKind::kBinary, "rubbish", "", ""}, "nine", 1, &outcome),
            nullptr);
  EXPECT_EQ(outcome.failure, Failure::kBuild);
}

TEST_F(OpenclTest, spirv_is_loaded_or_refused_with_a_reason) {
  Outcome outcome;
  const std::string not_spirv = "rubbish!";
  EXPECT_EQ(backend().load(0, {ProgramKind::kSpirv, not_spirv, "k.spv", ""}, "k", 1, &outcome),
            nullptr);
  EXPECT_TRUE(outcome.failure == Failure::kUnsupported || outcome.failure == Failure::kBuild);
  EXPECT_NE(outcome.message.find("k.spv"), std::string::npos) << outcome.message;
}

}  // namespace
}  // namespace amasia::devices
