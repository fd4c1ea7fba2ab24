// SPDX-License-Identifier: Apache-2.0
// Real work on OpenCL's devices, or with AMASIA_DEVICES_BACKENDS=cuda on the GPUs of CUDA, through
// the C interface and the daemon, held against this CPU: saxpy, vector add, products of matrices
// whole and in tiles, a Fourier transform and a stencil as chains of dependent tasks, resident data
// used again, and a buffer shared with another process. Prints what does not hold and ends with 1;
// where there is no such device, with 77: skipped.
#include <amasia/mcl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.hpp"

namespace {

// What stands before the kernels in either language.
const char* const kOpenclWords = R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL __kernel
#define GLOBAL __global
#define GLOBAL_ID(d) get_global_id(d)
#define GLOBAL_SIZE(d) get_global_size(d)
)";
const char* const kCudaWords = R"(
#define KERNEL extern "C" __global__
#define GLOBAL
#define AT(v, d) ((d) == 0 ? (v).x : (v).y)
#define GLOBAL_ID(d) (AT(blockIdx, d) * AT(blockDim, d) + AT(threadIdx, d))
#define GLOBAL_SIZE(d) (AT(gridDim, d) * AT(blockDim, d))
)";
const char* const kKernels = R"(
KERNEL void saxpy_REAL(GLOBAL const REAL* x, GLOBAL const REAL* y, REAL a, GLOBAL REAL* z) {
  const int i = GLOBAL_ID(0);
  z[i] = a * x[i] + y[i];
}
KERNEL void gemm_REAL(GLOBAL const REAL* a, GLOBAL const REAL* b, int n, GLOBAL REAL* c) {
  const int row = GLOBAL_ID(0), column = GLOBAL_ID(1);
  REAL sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
KERNEL void add_REAL(GLOBAL const int* x, GLOBAL const int* y, GLOBAL int* z) {
  const int i = GLOBAL_ID(0);
  z[i] = x[i] + y[i];
}
KERNEL void stencil_REAL(GLOBAL const REAL* from, GLOBAL REAL* to, int n) {
  const int i = GLOBAL_ID(0);
  to[i] = i == 0 || i == n - 1 ? from[i] : (from[i - 1] + 2 * from[i] + from[i + 1]) / 4;
}
KERNEL void fourier_REAL(GLOBAL const REAL* in, GLOBAL REAL* out, int half_size) {
  const int i = GLOBAL_ID(0), t = GLOBAL_SIZE(0);
  const int k = i & (half_size - 1), j = ((i - k) << 1) + k;
  const REAL angle = -(REAL)3.14159265358979323846 * (REAL)k / (REAL)half_size;
  const REAL c = cos(angle), s = sin(angle);
  const REAL wr = in[2 * (i + t)] * c - in[2 * (i + t) + 1] * s;
  const REAL wi = in[2 * (i + t)] * s + in[2 * (i + t) + 1] * c;
  out[2 * j] = in[2 * i] + wr;
  out[2 * j + 1] = in[2 * i + 1] + wi;
  out[2 * (j + half_size)] = in[2 * i] - wr;
  out[2 * (j + half_size) + 1] = in[2 * i + 1] - wi;
}
)";

bool by_cuda = false;
int wrong = 0;
void expect(bool holds, const char* what, const char* detail = "") {
  if (holds) return;
  std::printf("%s %s: does not hold (%s)\n", what, detail, mcl_reason());
  wrong = 1;
}

using Sizes = std::vector<std::uint64_t>;
constexpr std::uint64_t kIn = MCL_ARG_BUFFER | MCL_ARG_INPUT;
constexpr std::uint64_t kOut = MCL_ARG_BUFFER | MCL_ARG_OUTPUT;
constexpr std::uint64_t kKept = MCL_ARG_BUFFER | MCL_ARG_RESIDENT;

struct Argument {
  void* at;
  std::size_t size;
  std::uint64_t flags;
  long offset = 0;
};
template <typename T>
Argument in(std::vector<T>& of) {
  return {of.data(), of.size() * sizeof(T), kIn};
}
template <typename T>
Argument out(std::vector<T>& of) {
  return {of.data(), of.size() * sizeof(T), kOut};
}
template <typename T>
Argument value(T& of) {
  return {&of, sizeof of, MCL_ARG_SCALAR | MCL_ARG_INPUT};
}

mcl_handle* start(const std::string& kernel, const std::vector<Argument>& arguments, Sizes global,
                  std::vector<mcl_handle*> after = {}) {
  global.resize(3, 1);
  mcl_handle* const task = mcl_task_create();
  std::string name = kernel;
  expect(mcl_task_set_kernel(task, name.data(), arguments.size()) == 0, "set_kernel", name.c_str());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    const int error = a.offset != 0
                          ? mcl_task_set_arg_buffer(task, i, a.at, a.size, a.offset, a.flags)
                          : mcl_task_set_arg(task, i, a.at, a.size, a.flags);
    expect(error == 0, "set_arg", name.c_str());
  }
  expect(mcl_exec_with_dependencies(task, global.data(), nullptr, MCL_TASK_ANY, after.size(),
                                    after.data()) == 0,
         "exec", name.c_str());
  return task;
}
void finish(mcl_handle* task, const char* what) {
  expect(mcl_wait(task) == 0, what, mcl_task_reason(task));
  mcl_hdl_free(task);
}

template <typename T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::vector<T> made(count);
  unsigned state = seed * 2654435761U + 1;
  for (T& number : made) {
    state = state * 1664525U + 1013904223U;
    number = static_cast<T>(0.5 + (state >> 8) / 16777216.0);
  }
  return made;
}

template <typename T>
double error_of(const std::vector<T>& got, const std::vector<T>& expected) {
  double most = 0, off = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(double(expected[i])));
    const double difference = std::abs(double(got[i]) - double(expected[i]));
    if (!(difference <= off)) off = difference;
  }
  return off / most;
}

template <typename T>
std::vector<T> product(const std::vector<T>& a, const std::vector<T>& b, std::size_t n) {
  std::vector<T> c(n * n);
  std::vector<double> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) row[j] += double(a[i * n + k]) * double(b[k * n + j]);
    }
    std::copy(row.begin(), row.end(), c.begin() + static_cast<std::ptrdiff_t>(i * n));
  }
  return c;
}

template <typename T>
void check_vectors_and_products(const char* real, double allowed) {
  const std::string suffix = std::string("_") + real;
  constexpr std::size_t kCount = 5003;
  auto x = numbers<T>(kCount, 1), y = numbers<T>(kCount, 2);
  std::vector<T> z(kCount), expected(kCount);
  T a = 3;
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = a * x[i] + y[i];
  finish(start("saxpy" + suffix, {in(x), in(y), value(a), out(z)}, {kCount}), "saxpy");
  expect(error_of(z, expected) <= allowed, "saxpy", real);
  for (std::size_t n : {64U, 128U, 256U}) {
    auto m = numbers<T>(n * n, 3), o = numbers<T>(n * n, 4);
    std::vector<T> p(n * n);
    int size = static_cast<int>(n);
    finish(start("gemm" + suffix, {in(m), in(o), value(size), out(p)}, {n, n}), "gemm");
    expect(error_of(p, product(m, o, n)) <= static_cast<double>(n) * allowed, "gemm", real);
  }
}

void check_add() {
  std::vector<int> x(1000), y(1000), z(1000);
  for (int i = 0; i < 1000; ++i) x[i] = i, y[i] = 3 * i;
  finish(start("add_float", {in(x), in(y), out(z)}, {1000}), "add");
  for (int i = 0; i < 1000; ++i) expect(z[i] == 4 * i, "add");
}

// Told by the call that makes them, not by the task.
void check_wrong_arguments() {
  std::vector<float> x(8), y(8), z(8);
  double wide = 2;
  float right = 2;
  char kernel[] = "saxpy_float";
  const auto says = [](const char* part) { return std::strstr(mcl_reason(), part) != nullptr; };
  mcl_handle* const task = mcl_task_create();
  for (const std::uint64_t count : {0, 3, 5}) {
    if (by_cuda && count == 5) continue;  // one of them might be memory of the group, which is none
    expect(mcl_task_set_kernel(task, kernel, count) == -MCL_ERR_ARGCOUNT, "number", kernel);
    expect(says("takes 4 arguments, not"), "number", mcl_reason());
  }
  expect(mcl_task_set_kernel(task, kernel, 4) == 0, "set_kernel", kernel);
  mcl_task_set_arg(task, 0, x.data(), 32, kIn);
  mcl_task_set_arg(task, 1, y.data(), 32, kIn);
  mcl_task_set_arg(task, 2, &wide, sizeof wide, MCL_ARG_SCALAR);
  mcl_task_set_arg(task, 3, z.data(), 32, kOut);
  std::uint64_t global[3] = {8, 1, 1};
  expect(mcl_exec(task, global, nullptr, MCL_TASK_ANY) == -MCL_ERR_ARGSIZE, "size", kernel);
  expect(says(by_cuda ? "parameter 2 of the kernel 'saxpy_float'"
                      : "argument 2 of the kernel 'saxpy_float'"), "size", mcl_reason());
  mcl_task_set_arg(task, 2, &right, sizeof right, MCL_ARG_SCALAR);
  expect(mcl_exec(task, global, nullptr, MCL_TASK_ANY) == 0, "the same task, put right", kernel);
  finish(task, "put right");
}

// Bands of rows as parts of registered buffers: all tasks use one copy of the second matrix.
void check_tiles() {
  constexpr std::size_t kSize = 96, kBand = 12;
  auto a = numbers<float>(kSize * kSize, 5), b = numbers<float>(kSize * kSize, 6);
  std::vector<float> c(kSize * kSize);
  const std::size_t bytes = c.size() * sizeof(float), band = kBand * kSize * sizeof(float);
  for (auto* matrix : {&a, &b}) {
    expect(mcl_register_buffer(matrix->data(), bytes, kKept) == 0, "register");
  }
  int n = kSize;
  std::vector<mcl_handle*> tasks;
  for (std::size_t row = 0; row < kSize; row += kBand) {
    tasks.push_back(start("gemm_float",
                          {{a.data(), band, kIn | MCL_ARG_RESIDENT,
                            static_cast<long>(row * kSize * sizeof(float))},
                           {b.data(), bytes, kIn | MCL_ARG_RESIDENT},
                           value(n),
                           {&c[row * kSize], band, kOut}},
                          {kBand, kSize}));
  }
  for (mcl_handle* const task : tasks) finish(task, "tiles");
  expect(error_of(c, product(a, b, kSize)) <= 1e-4, "tiles");
  for (auto* matrix : {&a, &b}) {
    expect(mcl_unregister_buffer(matrix->data()) == 0, "unregister");
  }
}

// Two buffers that stay on devices, each pass a task that depends on the one before; the last one
// brings the result.
template <typename Pass>
void chain(std::vector<double>& from, std::vector<double>& to, int passes, const Pass& pass) {
  constexpr std::uint64_t kFlags = kKept | MCL_ARG_DYNAMIC | MCL_ARG_INPUT;
  std::vector<mcl_handle*> tasks;
  std::vector<double>*source = &from, *target = &to;
  const std::size_t bytes = from.size() * sizeof(double);
  for (int i = 0; i < passes; ++i) {
    const std::uint64_t last = i + 1 == passes ? MCL_ARG_OUTPUT : 0;
    tasks.push_back(pass(i, Argument{source->data(), bytes, kFlags},
                         Argument{target->data(), bytes, kFlags | last},
                         tasks.empty() ? std::vector<mcl_handle*>{}
                                       : std::vector<mcl_handle*>{tasks.back()}));
    std::swap(source, target);
  }
  for (mcl_handle* const task : tasks) finish(task, "a chain");
  for (auto* buffer : {&from, &to}) mcl_unregister_buffer(buffer->data());
}

void check_fourier() {
  constexpr std::size_t kPoints = 256;
  auto data = numbers<double>(2 * kPoints, 7);
  const auto input = data;
  std::vector<double> other(data.size()), expected(data.size());
  chain(data, other, 8, [&](int i, Argument from, Argument to, std::vector<mcl_handle*> after) {
    int half = 1 << i;
    return start("fourier_double", {from, to, value(half)}, {kPoints / 2}, std::move(after));
  });
  for (std::size_t k = 0; k < kPoints; ++k) {
    for (std::size_t i = 0; i < kPoints; ++i) {
      const double angle = -2 * 3.14159265358979323846 * double(k * i % kPoints) / kPoints;
      expected[2 * k] += input[2 * i] * std::cos(angle) - input[2 * i + 1] * std::sin(angle);
      expected[2 * k + 1] += input[2 * i] * std::sin(angle) + input[2 * i + 1] * std::cos(angle);
    }
  }
  expect(error_of(data, expected) <= 1e-11, "Fourier transform");  // 8 passes end where they began
}

void check_stencil() {
  auto data = numbers<double>(777, 8);
  auto expected = data;
  std::vector<double> other(data.size()), next(data.size());
  int count = static_cast<int>(data.size());
  chain(data, other, 60, [&](int, Argument from, Argument to, std::vector<mcl_handle*> after) {
    return start("stencil_double", {from, to, value(count)}, {data.size()}, std::move(after));
  });
  for (int step = 0; step < 60; ++step) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      next[i] = i == 0 || i + 1 == data.size()
                    ? expected[i]
                    : (expected[i - 1] + 2 * expected[i] + expected[i + 1]) / 4;
    }
    expected.swap(next);
  }
  expect(error_of(data, expected) <= 1e-13, "stencil");
}

// Resident data is what it was when it was copied, until the program says that it has changed.
void check_resident() {
  std::vector<int> x(300, 1), y(300, 10), z(300);
  const std::size_t bytes = x.size() * sizeof(int);
  const auto add = [&](std::uint64_t more) {
    finish(start("add_float",
                 {{x.data(), bytes, kIn | MCL_ARG_RESIDENT | more}, in(y), out(z)}, {300}),
           "resident");
    return z[299];
  };
  for (int round = 0; round < 5; ++round) expect(add(0) == 11, "resident");
  std::fill(x.begin(), x.end(), 2);
  expect(add(MCL_ARG_REWRITE) == 12, "resident, rewritten");
  std::fill(x.begin(), x.end(), 3);
  expect(mcl_invalidate_buffer(x.data()) == 0, "invalidate");
  expect(add(0) == 13, "resident, invalidated");
  std::fill(x.begin(), x.end(), 4);
  finish(start("add_float", {{x.data(), bytes, kIn | MCL_ARG_INVALID}, in(y), out(z)}, {300}),
         "invalid, for one task");
  expect(z[299] == 14, "invalid, for one task");
  expect(add(0) == 14, "resident, after one that was invalid");
  expect(mcl_unregister_buffer(x.data()) == 0, "unregister");
}

constexpr std::size_t kShared = 2000;
int* shared(const std::string& name, int flags) {
  void* const at = mcl_get_shared_buffer(name.c_str(), kShared * sizeof(int), flags);
  expect(at != nullptr, "shared buffer", name.c_str());
  return static_cast<int*>(at);
}
void add_to_shared(int* data, int amount) {
  std::vector<int> by(kShared, amount);
  constexpr std::uint64_t kFlags =
      kKept | MCL_ARG_SHARED | MCL_ARG_DYNAMIC | MCL_ARG_INPUT | MCL_ARG_OUTPUT;
  const Argument all{data, kShared * sizeof(int), kFlags};
  finish(start("add_float", {all, in(by), all}, {kShared}), "shared");
}

void load_kernels();

// The other process: sees what the first one's task wrote, and adds to it by a task of its own.
int be_the_other(const std::string& name) {
  load_kernels();
  int* const data = shared(name, MCL_ARG_DYNAMIC);
  if (data == nullptr) return 1;
  expect(data[kShared - 1] == 7, "what the other process wrote");
  add_to_shared(data, 35);
  mcl_free_shared_buffer(data);
  expect(mcl_finit() == 0, "finit");
  return wrong;
}

void check_shared(const char* program) {
  const std::string name = "amasia-real-work-" + std::to_string(::getpid());
  int* const data = shared(name, MCL_SHARED_MEM_NEW | MCL_SHARED_MEM_DEL_OLD | MCL_ARG_DYNAMIC);
  if (data == nullptr) return;
  std::fill(data, data + kShared, 0);
  add_to_shared(data, 7);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program, program, "--other", name.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  expect(status == 0, "the other process");
  expect(std::all_of(data, data + kShared, [](int one) { return one == 42; }), "shared sum");
  mcl_free_shared_buffer(data);
}

int load_text(const std::string& text) {
  const amasia::tests::TemporaryFolder folder("real-work");
  std::string path = folder / "kernels";
  expect(!(std::ofstream(path) << text).fail(), "the kernels' file");
  char none[] = "";
  return mcl_prg_load(path.data(), none, by_cuda ? MCL_PRG_CUDA : MCL_PRG_SRC);
}

void load_kernels() {
  if (mcl_init(3, 0) != 0) {
    std::printf("mcl_init: %s\n", mcl_reason());
    std::exit(1);
  }
  if (mcl_get_ndev() == 0) std::exit(77);
  mcl_set_timeout(UINT64_MAX);  // how long a loaded machine takes is nothing to test
  for (const char* const real : {"float", "double"}) {
    // Kernels of both are loaded side by side, so their names differ.
    std::string text = std::string(by_cuda ? kCudaWords : kOpenclWords) + kKernels;
    for (std::size_t at = 0; (at = text.find("REAL", at)) != std::string::npos;) {
      text.replace(at, 4, real);
    }
    const int error = load_text(text);
    if (error == -MCL_ERR_INVPRG && std::strstr(mcl_reason(), "no device") != nullptr) {
      std::printf("skipped: %s\n", mcl_reason());
      std::exit(77);
    }
    expect(error == 0, "mcl_prg_load", real);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("POCL_DEVICES", "pthread basic basic", 0);
  ::setenv("AMASIA_DEVICES_BACKENDS", "opencl", 0);
  by_cuda = std::strcmp(std::getenv("AMASIA_DEVICES_BACKENDS"), "cuda") == 0;
  if (argc == 3 && std::strcmp(argv[1], "--other") == 0) return be_the_other(argv[2]);
  load_kernels();
  check_vectors_and_products<float>("float", 1e-5);
  check_vectors_and_products<double>("double", 1e-13);
  check_add();
  check_wrong_arguments();
  check_tiles();
  check_fourier();
  check_stencil();
  check_resident();
  check_shared(argv[0]);
  expect(mcl_finit() == 0, "finit");
  if (wrong == 0) std::printf("real work: all is well\n");
  return wrong;
}
