// SPDX-License-Identifier: Apache-2.0
// What every back end that loads programs must do, on each of its devices: real work held against
// a CPU, parts of buffers, many works at once, and what it says of works that cannot be.
#pragma once

#include <gtest/gtest.h>

#include <thread>

#include "devices/backends/scenario.hpp"

namespace amasia::devices::scenario {

// How a back end is spoken to.
struct Language {
  ProgramKind source = ProgramKind::kSource;
  std::string words;      // before every kernel's text
  std::string group_sum;  // a kernel of this name with memory of the group
  double float_error = 1e-5, double_error = 1e-13;
};

// One device, as the bodies below use it.
struct Bench {
  Backend& backend;
  LocalDevice device;
  const Language& language;

  ProgramCode code(const char* real = "float", const std::string& text = kKernels) const {
    return {language.source, language.words + text, "", std::string("-DREAL=") + real};
  }
  std::unique_ptr<LoadedKernel> load(const char* kernel, std::size_t arguments,
                                     const char* real = "float") const {
    Outcome outcome;
    auto loaded = backend.load(device, code(real), kernel, arguments, &outcome);
    EXPECT_NE(loaded, nullptr) << outcome.message;
    return loaded;
  }
  template <typename T>
  std::unique_ptr<DeviceBuffer> memory(std::size_t count) const {
    Outcome outcome;
    auto made = backend.allocate(device, count * sizeof(T), nullptr, &outcome);
    EXPECT_NE(made, nullptr) << outcome.message;
    return made;
  }
  Outcome launch(LoadedKernel* kernel, std::vector<KernelArgument> arguments,
                 std::vector<std::uint64_t> global, std::vector<Copy> in, std::vector<Copy> out,
                 std::vector<std::uint64_t> local_size = {}) const {
    Work work;
    work.device = device;
    work.kernel = kernel;
    work.dimensions = static_cast<std::uint32_t>(global.size());
    std::copy(global.begin(), global.end(), work.global);
    std::copy(local_size.begin(), local_size.end(), work.local);
    work.arguments = arguments;
    work.to_device = in;
    work.to_host = out;
    return run(backend, work);
  }
};
template <typename T>
Copy copy(DeviceBuffer* to, const std::vector<T>& host, Bytes offset = 0) {
  return {to, offset, const_cast<T*>(host.data()), host.size() * sizeof(T)};
}
inline void expect_done(const Outcome& outcome) {
  EXPECT_EQ(static_cast<int>(outcome.failure), 0) << outcome.message;
}

template <typename T>
const char* real_name() {
  return sizeof(T) == 4 ? "float" : "double";
}
template <typename T>
double allowed_error(const Bench& bench) {
  return sizeof(T) == 4 ? bench.language.float_error : bench.language.double_error;
}

template <typename T>
void saxpy(const Bench& bench) {
  constexpr std::size_t kCount = 10007;  // no multiple of anything
  const auto x = random_numbers<T>(kCount, 1), y = random_numbers<T>(kCount, 2);
  std::vector<T> z(kCount), expected(kCount);
  const T a = static_cast<T>(1.25);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = a * x[i] + y[i];
  const auto kernel = bench.load("saxpy", 4, real_name<T>());
  const auto dx = bench.memory<T>(kCount), dy = bench.memory<T>(kCount),
             dz = bench.memory<T>(kCount);
  expect_done(bench.launch(kernel.get(),
                           {buffer(dx.get()), buffer(dy.get()), value(a), buffer(dz.get())},
                           {kCount}, {copy(dx.get(), x), copy(dy.get(), y)}, {copy(dz.get(), z)}));
  EXPECT_LE(largest_error(z, expected), allowed_error<T>(bench));
}

template <typename T>
void gemm(const Bench& bench) {
  const auto kernel = bench.load("gemm", 4, real_name<T>());
  for (const std::size_t n : {64U, 128U, 256U}) {
    const auto a = random_numbers<T>(n * n, 3), b = random_numbers<T>(n * n, 4);
    std::vector<T> c(n * n);
    const auto da = bench.memory<T>(n * n), db = bench.memory<T>(n * n),
               dc = bench.memory<T>(n * n);
    const int size = static_cast<int>(n);
    expect_done(bench.launch(kernel.get(),
                             {buffer(da.get()), buffer(db.get()), value(size), buffer(dc.get())},
                             {n, n}, {copy(da.get(), a), copy(db.get(), b)}, {copy(dc.get(), c)},
                             {8, 8}));
    EXPECT_LE(largest_error(c, gemm_by_cpu(a, b, n)), n * allowed_error<T>(bench)) << n;
  }
}

// The same matrices stay on the device; each work makes a band of rows, from and to parts of them.
inline void gemm_in_bands(const Bench& bench) {
  constexpr std::size_t kSize = 64, kBand = 16;
  const auto a = random_numbers<float>(kSize * kSize, 5);
  const auto b = random_numbers<float>(kSize * kSize, 6);
  std::vector<float> c(kSize * kSize);
  const auto kernel = bench.load("gemm", 4);
  const auto da = bench.memory<float>(c.size()), db = bench.memory<float>(c.size()),
             dc = bench.memory<float>(c.size());
  expect_done(bench.launch(nullptr, {}, {1}, {copy(da.get(), a), copy(db.get(), b)}, {}));
  const int size = kSize;
  for (std::size_t row = 0; row < kSize; row += kBand) {
    const Bytes offset = row * kSize * sizeof(float), bytes = kBand * kSize * sizeof(float);
    expect_done(bench.launch(kernel.get(),
                             {buffer(da.get(), bytes, offset), buffer(db.get()), value(size),
                              buffer(dc.get(), bytes, offset)},
                             {kBand, kSize}, {}, {{dc.get(), offset, &c[row * kSize], bytes}}));
  }
  EXPECT_LE(largest_error(c, gemm_by_cpu(a, b, kSize)), kSize * bench.language.float_error);
}

inline void fourier(const Bench& bench) {
  constexpr std::size_t kPoints = 512;
  const auto in = random_numbers<double>(2 * kPoints, 7);
  std::vector<double> out(in.size());
  const auto kernel = bench.load("fft", 3, "double");
  auto from = bench.memory<double>(in.size()), to = bench.memory<double>(in.size());
  expect_done(bench.launch(nullptr, {}, {1}, {copy(from.get(), in)}, {}));
  for (int half = 1; half < static_cast<int>(kPoints); half *= 2) {
    expect_done(bench.launch(kernel.get(), {buffer(from.get()), buffer(to.get()), value(half)},
                             {kPoints / 2}, {}, {}));
    std::swap(from, to);
  }
  expect_done(bench.launch(nullptr, {}, {1}, {}, {copy(from.get(), out)}));
  EXPECT_LE(largest_error(out, fourier_by_cpu(in)), 1e-11);
}

inline void stencil_chain(const Bench& bench) {
  constexpr std::size_t kCount = 1000;
  auto expected = random_numbers<double>(kCount, 8);
  std::vector<double> next(kCount), got(kCount);
  const auto kernel = bench.load("stencil", 3, "double");
  auto from = bench.memory<double>(kCount), to = bench.memory<double>(kCount);
  expect_done(bench.launch(nullptr, {}, {1}, {copy(from.get(), expected)}, {}));
  const int count = kCount;
  for (int step = 0; step < 100; ++step) {
    expect_done(bench.launch(kernel.get(), {buffer(from.get()), buffer(to.get()), value(count)},
                             {kCount}, {}, {}));
    std::swap(from, to);
    for (std::size_t i = 0; i < kCount; ++i) {
      next[i] = i == 0 || i == kCount - 1
                    ? expected[i]
                    : (expected[i - 1] + 2 * expected[i] + expected[i + 1]) / 4;
    }
    expected.swap(next);
  }
  expect_done(bench.launch(nullptr, {}, {1}, {}, {copy(from.get(), got)}));
  EXPECT_LE(largest_error(got, expected), 1e-13);
}

// Parts that begin and end anywhere; what lies beside them stays.
inline void parts_of_buffers(const Bench& bench) {
  constexpr std::size_t kCount = 1024;
  const auto kernel = bench.load("increment", 1);
  const auto memory = bench.memory<int>(kCount);
  std::vector<int> expected(kCount), got(kCount);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = static_cast<int>(i);
  expect_done(bench.launch(nullptr, {}, {1}, {copy(memory.get(), expected)}, {}));
  std::mt19937 random(9);
  for (int round = 0; round < 40; ++round) {
    const std::size_t begin = round == 0 ? 32 : random() % kCount;
    const std::size_t count = 1 + random() % (kCount - begin);
    expect_done(bench.launch(
        kernel.get(), {buffer(memory.get(), count * sizeof(int), begin * sizeof(int))}, {count},
        {}, {}));
    for (std::size_t i = begin; i < begin + count; ++i) ++expected[i];
  }
  expect_done(bench.launch(nullptr, {}, {1}, {}, {copy(memory.get(), got)}));
  EXPECT_EQ(got, expected);
}

inline void memory_of_a_group(const Bench& bench) {
  constexpr std::size_t kCount = 512, kGroup = 64;
  Outcome outcome;
  const auto kernel = bench.backend.load(
      bench.device, bench.code("float", bench.language.group_sum), "group_sum", 3, &outcome);
  ASSERT_NE(kernel, nullptr) << outcome.message;
  std::vector<int> x(kCount), sums(kCount / kGroup), expected(kCount / kGroup);
  for (std::size_t i = 0; i < kCount; ++i) {
    x[i] = static_cast<int>(i * i % 97);
    expected[i / kGroup] += x[i];
  }
  const auto dx = bench.memory<int>(kCount), ds = bench.memory<int>(sums.size());
  expect_done(bench.launch(kernel.get(),
                           {buffer(dx.get()), buffer(ds.get()), local(kGroup * sizeof(int))},
                           {kCount}, {copy(dx.get(), x)}, {copy(ds.get(), sums)}, {kGroup}));
  EXPECT_EQ(sums, expected);
}

// All submitted before any is waited for, by several threads, with one kernel.
inline void many_at_once(const Bench& bench) {
  constexpr int kThreads = 4, kWorks = 40;
  constexpr std::size_t kCount = 256;
  const auto kernel = bench.load("saxpy", 4);
  const auto ones = std::vector<float>(kCount, 1);
  struct One {
    std::vector<float> z = std::vector<float>(kCount);
    float a = 0;
    std::unique_ptr<DeviceBuffer> dx, dy, dz;
    std::vector<KernelArgument> arguments;
    std::vector<Copy> in, out;
    Waiter waiter;
  };
  std::vector<std::vector<One>> all(kThreads);
  for (auto& ones_of_thread : all) ones_of_thread = std::vector<One>(kWorks);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kWorks; ++i) {
        One& one = all[t][i];
        one.a = static_cast<float>(t * kWorks + i);
        one.dx = bench.memory<float>(kCount);
        one.dy = bench.memory<float>(kCount);
        one.dz = bench.memory<float>(kCount);
        one.arguments = {buffer(one.dx.get()), buffer(one.dy.get()), value(one.a),
                         buffer(one.dz.get())};
        one.in = {copy(one.dx.get(), ones), copy(one.dy.get(), ones)};
        one.out = {copy(one.dz.get(), one.z)};
        Work work;
        work.device = bench.device;
        work.kernel = kernel.get();
        work.global[0] = kCount;
        work.arguments = one.arguments;
        work.to_device = one.in;
        work.to_host = one.out;
        work.wants_times = i % 2 == 0;
        bench.backend.submit(work, one.waiter);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& works : all) {
    for (One& one : works) {
      expect_done(one.waiter.wait());
      EXPECT_EQ(one.z, std::vector<float>(kCount, one.a + 1));
    }
  }
}

// Brief works handed over together, with failing ones and ones that copy among them and at the end,
// and rows of failing ones alone: each is told of once, and as it ended.
inline void brief_ones_together(const Bench& bench) {
  constexpr int kWorks = 100;
  const auto kernel = bench.load("increment", 1);
  struct One {
    std::vector<int> x = std::vector<int>(8);
    std::unique_ptr<DeviceBuffer> dx;
    std::vector<KernelArgument> arguments;
    Copy whole;
    Waiter waiter;
  };
  std::vector<One> all(kWorks);
  const auto fails = [](int i) { return i % 9 == 4 || (i >= 40 && i < 60) || i == kWorks - 1; };
  const auto copies_back = [](int i) { return i % 5 == 2; };
  for (int i = 0; i < kWorks; ++i) {
    all[i].dx = bench.memory<int>(all[i].x.size());
    all[i].arguments.assign(fails(i) ? 2 : 1, buffer(all[i].dx.get()));
    all[i].x[0] = i;
    all[i].whole = copy(all[i].dx.get(), all[i].x);
    Work in;
    in.device = bench.device;
    in.to_device = {&all[i].whole, 1};
    expect_done(run(bench.backend, in));
  }
  // From the second time on it is known how long they take.
  for (int round = 1; round <= 3; ++round) {
    std::vector<Submission> works(kWorks);
    for (int i = 0; i < kWorks; ++i) {
      Work& work = works[i].work;
      work.device = bench.device;
      work.kernel = kernel.get();
      work.global[0] = all[i].x.size();
      work.arguments = all[i].arguments;
      if (copies_back(i)) work.to_host = {&all[i].whole, 1};
      works[i].completion = &all[i].waiter;
    }
    bench.backend.submit_all(works);
    for (int i = 0; i < kWorks; ++i) {
      const Outcome outcome = all[i].waiter.wait();
      EXPECT_EQ(outcome.failure, fails(i) ? Failure::kArguments : Failure::kNone)
          << i << ": " << outcome.message;
      EXPECT_LE(outcome.run_began, outcome.run_ended);
      EXPECT_LE(outcome.run_ended, os::monotonic_now());
      if (!fails(i) && copies_back(i)) {
        EXPECT_EQ(all[i].x[0], i + round) << i;
      }
    }
  }
  for (int i = 0; i < kWorks; ++i) {
    Work out;
    out.device = bench.device;
    out.to_host = {&all[i].whole, 1};
    expect_done(run(bench.backend, out));
    EXPECT_EQ(all[i].x[0], fails(i) ? i : i + 3) << i;
    EXPECT_EQ(all[i].x[7], fails(i) ? 0 : 3) << i;
  }
}

inline void times_are_in_order(const Bench& bench) {
  const auto kernel = bench.load("spin", 2);
  std::vector<int> x(4096, 1);
  const auto dx = bench.memory<int>(x.size());
  const int rounds = 2000;
  const std::vector<KernelArgument> arguments = {buffer(dx.get()), value(rounds)};
  const Copy whole = copy(dx.get(), x);
  Work work;
  work.device = bench.device;
  work.kernel = kernel.get();
  work.global[0] = x.size();
  work.arguments = arguments;
  work.to_device = work.to_host = {&whole, 1};
  for (int i = 0; i < 60; ++i) {
    work.wants_times = i < 10;  // others are measured at times
    const Nanos before = os::monotonic_now();
    const Outcome outcome = run(bench.backend, work);
    const Nanos after = os::monotonic_now();
    expect_done(outcome);
    // A millisecond for what clocks drift between two works.
    EXPECT_GE(outcome.copy_began, before - base::kMillisecond);
    EXPECT_LE(outcome.copy_began, outcome.run_began);
    EXPECT_LT(outcome.run_began, outcome.run_ended);
    EXPECT_LE(outcome.run_ended, outcome.copy_ended);
    EXPECT_LE(outcome.copy_ended, after);
  }
}

inline void failures_are_named(const Bench& bench) {
  Outcome outcome;
  auto& backend = bench.backend;
  // The compiler's own words.
  const ProgramCode broken = bench.code("float", "KERNEL void f() { no_such_thing(); }");
  EXPECT_EQ(backend.load(bench.device, broken, "f", 0, &outcome), nullptr);
  EXPECT_EQ(outcome.failure, Failure::kBuild);
  EXPECT_NE(outcome.message.find("no_such_thing"), std::string::npos) << outcome.message;

  outcome = {};
  EXPECT_EQ(backend.load(bench.device, bench.code(), "no_such_kernel", 1, &outcome), nullptr);
  EXPECT_EQ(outcome.failure, Failure::kNoKernel);
  EXPECT_NE(outcome.message.find("no_such_kernel"), std::string::npos) << outcome.message;

  outcome = {};
  EXPECT_EQ(backend.allocate(bench.device, Bytes{1} << 60, nullptr, &outcome), nullptr);
  EXPECT_EQ(outcome.failure, Failure::kDeviceMemory);
  EXPECT_NE(outcome.message.find("1152921504606846976"), std::string::npos) << outcome.message;

  const auto kernel = bench.load("increment", 1);
  std::vector<int> x(100, 5);
  const auto dx = bench.memory<int>(x.size());
  const auto launch = [&](std::vector<KernelArgument> arguments, std::uint64_t global,
                          std::uint64_t group) {
    return bench.launch(kernel.get(), std::move(arguments), {global}, {copy(dx.get(), x)},
                        {copy(dx.get(), x)}, {group});
  };
  EXPECT_EQ(launch({buffer(dx.get()), buffer(dx.get())}, 100, 0).failure, Failure::kArguments);
  EXPECT_EQ(launch({buffer(dx.get())}, 100, std::uint64_t{1} << 30).failure, Failure::kWorkSize);
  // What failed has left nothing behind.
  expect_done(launch({buffer(dx.get())}, 100, 0));
  EXPECT_EQ(x, std::vector<int>(100, 6));
}

struct Body {
  const char* name;
  void (*check)(const Bench&);
};
inline const Body kBodies[] = {
    {"saxpy_float", saxpy<float>},
    {"saxpy_double", saxpy<double>},
    {"gemm_float", gemm<float>},
    {"gemm_double", gemm<double>},
    {"gemm_in_bands", gemm_in_bands},
    {"fourier", fourier},
    {"stencil_chain", stencil_chain},
    {"parts_of_buffers", parts_of_buffers},
    {"memory_of_a_group", memory_of_a_group},
    {"many_at_once", many_at_once},
    {"brief_ones_together", brief_ones_together},
    {"times_are_in_order", times_are_in_order},
    {"failures_are_named", failures_are_named},
};

}  // namespace amasia::devices::scenario
