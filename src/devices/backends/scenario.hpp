// SPDX-License-Identifier: Apache-2.0
// For tests of back ends: kernels that read the same in OpenCL C and in CUDA C++, a work that is
// waited for, and what a CPU computes for comparison.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "devices/backends/backend.hpp"
#include "os/os.hpp"

namespace amasia::devices::scenario {

// Put before a kernel's text. REAL is float or double.
inline const char* const kOpenclWords =
    "#define KERNEL __kernel\n#define GLOBAL __global\n#define LOCAL_ARGUMENT(type, name) "
    "__local type* name\n#define LOCAL_MEMORY(type, name)\n"
    "#define GLOBAL_ID(d) ((int)get_global_id(d))\n#define GLOBAL_SIZE(d) "
    "((int)get_global_size(d))\n"
    "#define LOCAL_ID(d) ((int)get_local_id(d))\n#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)\n";
inline const char* const kCudaWords =
    "#define KERNEL extern \"C\" __global__\n#define GLOBAL\n"
    "#define AT(v, d) ((d) == 0 ? (v).x : (d) == 1 ? (v).y : (v).z)\n"
    "#define GLOBAL_ID(d) ((int)(AT(blockIdx, d) * AT(blockDim, d) + AT(threadIdx, d)))\n"
    "#define GLOBAL_SIZE(d) ((int)(AT(gridDim, d) * AT(blockDim, d)))\n"
    "#define LOCAL_ID(d) ((int)AT(threadIdx, d))\n#define BARRIER __syncthreads()\n";

inline const char* const kKernels = R"(
KERNEL void saxpy(GLOBAL const REAL* x, GLOBAL const REAL* y, REAL a, GLOBAL REAL* z) {
  const int i = GLOBAL_ID(0);
  z[i] = a * x[i] + y[i];
}
KERNEL void add(GLOBAL const int* x, GLOBAL const int* y, GLOBAL int* z) {
  const int i = GLOBAL_ID(0);
  z[i] = x[i] + y[i];
}
KERNEL void increment(GLOBAL int* x) { x[GLOBAL_ID(0)] += 1; }
KERNEL void gemm(GLOBAL const REAL* a, GLOBAL const REAL* b, int n, GLOBAL REAL* c) {
  const int row = GLOBAL_ID(0), column = GLOBAL_ID(1);
  REAL sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
KERNEL void stencil(GLOBAL const REAL* from, GLOBAL REAL* to, int n) {
  const int i = GLOBAL_ID(0);
  to[i] = i == 0 || i == n - 1 ? from[i] : (from[i - 1] + 2 * from[i] + from[i + 1]) / 4;
}
KERNEL void fft(GLOBAL const REAL* in, GLOBAL REAL* out, int half_size) {
  // One pass of radix 2, decimation in frequency, for GLOBAL_SIZE(0) butterflies.
  const int i = GLOBAL_ID(0), t = GLOBAL_SIZE(0);
  const int k = i & (half_size - 1), j = ((i - k) << 1) + k;
  const REAL angle = -(REAL)3.14159265358979323846 * (REAL)k / (REAL)half_size;
  const REAL c = cos(angle), s = sin(angle);
  const REAL ar = in[2 * i], ai = in[2 * i + 1];
  const REAL br = in[2 * (i + t)], bi = in[2 * (i + t) + 1];
  const REAL wr = br * c - bi * s, wi = br * s + bi * c;
  out[2 * j] = ar + wr;
  out[2 * j + 1] = ai + wi;
  out[2 * (j + half_size)] = ar - wr;
  out[2 * (j + half_size) + 1] = ai - wi;
}
KERNEL void spin(GLOBAL int* x, int rounds) {
  int value = x[GLOBAL_ID(0)];
  for (int i = 0; i < rounds; ++i) value = value * 1664525 + 1013904223;
  x[GLOBAL_ID(0)] = value;
}
)";

// Sums each work group's items in memory of the group; a size that is a power of two.
inline const char* const kOpenclGroupSum = R"(
KERNEL void group_sum(GLOBAL const int* x, GLOBAL int* sums, __local int* part) {
  const int me = LOCAL_ID(0);
  part[me] = x[GLOBAL_ID(0)];
  for (int half_size = (int)get_local_size(0) / 2; half_size > 0; half_size /= 2) {
    BARRIER;
    if (me < half_size) part[me] += part[me + half_size];
  }
  if (me == 0) sums[get_group_id(0)] = part[0];
}
)";

class Waiter final : public Completion {
 public:
  void finished(Outcome&& outcome) noexcept override {
    outcome_ = std::move(outcome);
    ended_.store(1, std::memory_order_release);  // partner: wait()
    os::futex_wake(ended_, 1);
  }
  // Waits for a minute at most; an end that never comes is a failure, not a hang.
  Outcome wait() {
    const Nanos deadline = os::monotonic_now() + 60 * base::kSecond;
    while (ended_.load(std::memory_order_acquire) == 0) {
      const Nanos left = deadline - os::monotonic_now();
      if (left <= 0) return {Failure::kDevice, "the work did not end within a minute"};
      os::futex_wait(ended_, 0, left);
    }
    ended_.store(0, std::memory_order_relaxed);
    return std::move(outcome_);
  }

 private:
  std::atomic<std::uint32_t> ended_{0};
  Outcome outcome_;
};

inline Outcome run(Backend& backend, const Work& work) {
  Waiter waiter;
  backend.submit(work, waiter);
  return waiter.wait();
}

inline KernelArgument buffer(DeviceBuffer* memory, Bytes size = 0, Bytes offset = 0) {
  KernelArgument argument;
  argument.kind = KernelArgument::Kind::kBuffer;
  argument.buffer = memory;
  argument.size = size;
  argument.offset = offset;
  return argument;
}
template <typename T>
KernelArgument value(const T& of) {
  KernelArgument argument;
  argument.value = &of;
  argument.size = sizeof of;
  return argument;
}
inline KernelArgument local(std::size_t size) {
  KernelArgument argument;
  argument.kind = KernelArgument::Kind::kLocal;
  argument.size = size;
  return argument;
}

template <typename T>
std::vector<T> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> numbers(0.5, 2.0);
  std::vector<T> made(count);
  for (T& number : made) number = static_cast<T>(numbers(random));
  return made;
}

// Each element by itself, in double precision.
template <typename T>
std::vector<T> gemm_by_cpu(const std::vector<T>& a, const std::vector<T>& b, std::size_t n) {
  std::vector<double> row(n);
  std::vector<T> c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) row[j] += double(a[i * n + k]) * double(b[k * n + j]);
    }
    for (std::size_t j = 0; j < n; ++j) c[i * n + j] = static_cast<T>(row[j]);
  }
  return c;
}

// The transform by its definition, in double precision: n complex numbers.
template <typename T>
std::vector<T> fourier_by_cpu(const std::vector<T>& in) {
  const std::size_t n = in.size() / 2;
  std::vector<T> out(in.size());
  for (std::size_t k = 0; k < n; ++k) {
    double re = 0, im = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double angle = -2 * 3.14159265358979323846 * double(k * i % n) / double(n);
      re += double(in[2 * i]) * std::cos(angle) - double(in[2 * i + 1]) * std::sin(angle);
      im += double(in[2 * i]) * std::sin(angle) + double(in[2 * i + 1]) * std::cos(angle);
    }
    out[2 * k] = static_cast<T>(re);
    out[2 * k + 1] = static_cast<T>(im);
  }
  return out;
}

// The largest difference, as part of the largest number.
template <typename T>
double largest_error(const std::vector<T>& got, const std::vector<T>& expected) {
  double most = 0, off = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::abs(double(expected[i])));
    const double difference = std::abs(double(got[i]) - double(expected[i]));
    off = std::isnan(difference) ? 1e300 : std::max(off, difference);
  }
  return most == 0 ? off : off / most;
}

}  // namespace amasia::devices::scenario
