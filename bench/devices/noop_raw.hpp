// SPDX-License-Identifier: Apache-2.0
// Kernels that do nothing, launched with OpenCL itself.
#pragma once

#include "../tasks/harness.hpp"
#include "peers.hpp"

namespace bench {

class RawNoop {
 public:
  explicit RawNoop(const Raw& raw)
      : raw_(raw), kernel_(raw.kernel("noop")), memory_(raw.memory(sizeof(int))) {
    must_cl(clSetKernelArg(kernel_, 0, sizeof memory_, &memory_), "clSetKernelArg");
  }
  ~RawNoop() {
    clReleaseMemObject(memory_);
    clReleaseKernel(kernel_);
  }
  RawNoop(const RawNoop&) = delete;
  RawNoop& operator=(const RawNoop&) = delete;

  void run(int tasks, int in_queue) const {
    const std::size_t one = 1;
    for (int i = 0; i < tasks; ++i) {
      must_cl(clEnqueueNDRangeKernel(raw_.queue, kernel_, 1, nullptr, &one, nullptr, 0, nullptr,
                                     nullptr),
              "clEnqueueNDRangeKernel");
      if ((i + 1) % in_queue == 0) clFinish(raw_.queue);
    }
    clFinish(raw_.queue);
  }

 private:
  const Raw& raw_;
  cl_kernel kernel_;
  cl_mem memory_;
};

}  // namespace bench
