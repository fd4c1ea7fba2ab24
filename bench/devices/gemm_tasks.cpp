// SPDX-License-Identifier: Apache-2.0
// How many products of matrices can be run in a second, when each brings its inputs and takes its
// result back (the paper's figures 4, 6 and 7)?
//
// Expected: at 64 the copies and the launch are a good part of the time, and tasks overlap them; at
// 256 and more the kernel is all, and both are alike. A second device adds its own rate, where the
// machine has the cores for it.
// Held against: OpenCL on the first of the same devices, waiting for each task, and with 16 tasks
// in the queue, each with buffers of its own. All three check some of what they got, in the time.
//   gemm_tasks [devices: pthread] [size: 64] [tasks: 64] [workers: 2] [rounds: 11]
#include "../tasks/harness.hpp"
#include "peers.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace {

struct Products {
  Products(std::size_t matrix_size, int tasks) : n(matrix_size), a(n * n), b(n * n) {
    for (std::size_t i = 0; i < n * n; ++i) {
      a[i] = 0.5F + static_cast<float>(i % 97) / 97;
      b[i] = 0.5F + static_cast<float>(i % 89) / 89;
    }
    c.assign(static_cast<std::size_t>(tasks), std::vector<float>(n * n));
  }
  // A few elements of each result, computed here.
  void check() {
    for (auto& result : c) {
      for (const std::size_t at : {std::size_t{0}, n * n / 2 + 1, n * n - 1}) {
        double sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += double(a[at / n * n + k]) * b[k * n + at % n];
        if (!(std::abs(result[at] - sum) <= 1e-4 * sum)) bench::stop("a product", "is wrong");
      }
      std::fill(result.begin(), result.end(), 0.0F);
    }
  }
  std::size_t n;
  std::vector<float> a, b;
  std::vector<std::vector<float>> c;
};

void run_tasks(Products& all) {
  const std::size_t bytes = all.n * all.n * sizeof(float);
  int n = static_cast<int>(all.n);
  std::uint64_t sizes[3] = {all.n, all.n, 1};
  std::vector<mcl_handle*> handles;
  for (auto& result : all.c) {
    mcl_handle* const handle = bench::Amasia::task("gemm", 4);
    const auto set = [&](unsigned index, void* at, std::size_t size, std::uint64_t flags) {
      bench::must(mcl_task_set_arg(handle, index, at, size, flags), "mcl_task_set_arg");
    };
    set(0, all.a.data(), bytes, MCL_ARG_BUFFER | MCL_ARG_INPUT);
    set(1, all.b.data(), bytes, MCL_ARG_BUFFER | MCL_ARG_INPUT);
    set(2, &n, sizeof n, MCL_ARG_SCALAR | MCL_ARG_INPUT);
    set(3, result.data(), bytes, MCL_ARG_BUFFER | MCL_ARG_OUTPUT);
    bench::must(mcl_exec(handle, sizes, nullptr, 0), "mcl_exec");
    handles.push_back(handle);
  }
  bench::must(mcl_wait_all(), "mcl_wait_all");
  for (mcl_handle* const handle : handles) bench::Amasia::end(handle);
  all.check();
}

struct Slot {
  Slot(const bench::Raw& raw, std::size_t bytes)
      : kernel(raw.kernel("gemm")),
        a(raw.memory(bytes)),
        b(raw.memory(bytes)),
        c(raw.memory(bytes)) {}
  ~Slot() {
    clReleaseKernel(kernel);
    for (const cl_mem memory : {a, b, c}) clReleaseMemObject(memory);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  cl_kernel kernel;
  cl_mem a, b, c;
};

using Slots = std::vector<std::unique_ptr<Slot>>;
void run_raw(const bench::Raw& raw, Products& all, const Slots& slots) {
  const std::size_t bytes = all.n * all.n * sizeof(float), sizes[2] = {all.n, all.n};
  const int n = static_cast<int>(all.n);
  std::size_t next = 0;
  for (auto& result : all.c) {
    const Slot& slot = *slots[next];
    clEnqueueWriteBuffer(raw.queue, slot.a, CL_FALSE, 0, bytes, all.a.data(), 0, nullptr, nullptr);
    clEnqueueWriteBuffer(raw.queue, slot.b, CL_FALSE, 0, bytes, all.b.data(), 0, nullptr, nullptr);
    clSetKernelArg(slot.kernel, 0, sizeof slot.a, &slot.a);
    clSetKernelArg(slot.kernel, 1, sizeof slot.b, &slot.b);
    clSetKernelArg(slot.kernel, 2, sizeof n, &n);
    clSetKernelArg(slot.kernel, 3, sizeof slot.c, &slot.c);
    bench::must_cl(clEnqueueNDRangeKernel(raw.queue, slot.kernel, 2, nullptr, sizes, nullptr, 0,
                                          nullptr, nullptr),
                   "clEnqueueNDRangeKernel");
    clEnqueueReadBuffer(raw.queue, slot.c, CL_FALSE, 0, bytes, result.data(), 0, nullptr, nullptr);
    next = (next + 1) % slots.size();
    if (next == 0) bench::must_cl(clFinish(raw.queue), "clFinish");
  }
  bench::must_cl(clFinish(raw.queue), "clFinish");
  all.check();
}

}  // namespace

int main(int argc, char** argv) {
  const char* const devices = argc > 1 ? argv[1] : "pthread";
  const std::size_t size = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 64;
  const int tasks = argc > 3 ? std::atoi(argv[3]) : 64;
  const unsigned workers = argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : 2;
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 11;
  bench::choose_devices(devices);
  bench::Amasia amasia(workers);
  const bench::Raw raw;
  Products all(size, tasks);
  Slots one, many;
  one.push_back(std::make_unique<Slot>(raw, size * size * sizeof(float)));
  for (int i = 0; i < 16; ++i) {
    many.push_back(std::make_unique<Slot>(raw, size * size * sizeof(float)));
  }
  bench::compare("gemm " + std::to_string(size) + " " + devices, workers, tasks, "task",
                 {{"amasia", [&] { run_tasks(all); }},
                  {"waits", [&] { run_raw(raw, all, one); }},
                  {"queue16", [&] { run_raw(raw, all, many); }}},
                 rounds);
  return 0;
}
