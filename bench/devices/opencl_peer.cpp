// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "peer.hpp"

namespace bench {
namespace {

void must_cl(cl_int error, const char* what) {
  if (error != CL_SUCCESS) stop(what, ("OpenCL error " + std::to_string(error)).c_str());
}

// The first device, with one queue.
struct Opencl {
  explicit Opencl(const Devices& devices) : group{devices.group(), devices.group()} {
    cl_uint count = 0;
    must_cl(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
    std::vector<cl_platform_id> platforms(count);
    must_cl(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
    const cl_device_type type = devices.are_gpus() ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_ALL;
    for (const cl_platform_id platform : platforms) {
      if (clGetDeviceIDs(platform, type, 1, &device, nullptr) == CL_SUCCESS) break;
    }
    if (device == nullptr) stop(devices.name.c_str(), "OpenCL has no such device here");
    cl_int error = CL_SUCCESS;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    must_cl(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    must_cl(error, "clCreateCommandQueue");
    const char* text = kOpenclSource;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
    must_cl(error, "clCreateProgramWithSource");
    must_cl(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  }
  ~Opencl() {
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
  }
  Opencl(const Opencl&) = delete;
  Opencl& operator=(const Opencl&) = delete;

  cl_kernel kernel(const char* name) const {
    cl_int error = CL_SUCCESS;
    const cl_kernel made = clCreateKernel(program, name, &error);
    must_cl(error, name);
    return made;
  }
  cl_mem memory(std::size_t size) const {
    cl_int error = CL_SUCCESS;
    const cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &error);
    must_cl(error, "clCreateBuffer");
    return made;
  }

  const std::size_t group[2];
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
};

struct Slot {
  Slot(const Opencl& cl, std::size_t bytes)
      : kernel(cl.kernel("gemm")), a(cl.memory(bytes)), b(cl.memory(bytes)), c(cl.memory(bytes)) {}
  ~Slot() {
    clReleaseKernel(kernel);
    for (const cl_mem memory : {a, b, c}) clReleaseMemObject(memory);
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  cl_kernel kernel;
  cl_mem a, b, c;
};

class OpenclPipeline final : public Peer::Pipeline {
 public:
  OpenclPipeline(const Opencl& cl, std::size_t size, int in_queue) : cl_(cl) {
    for (int i = 0; i < in_queue; ++i) {
      slots_.push_back(std::make_unique<Slot>(cl, size * size * sizeof(float)));
    }
  }

  void run(Products& all) override {
    std::size_t next = 0;
    for (auto& result : all.c) {
      enqueue(*slots_[next], all, result.data());
      next = (next + 1) % slots_.size();
      if (next == 0) must_cl(clFinish(cl_.queue), "clFinish");
    }
    must_cl(clFinish(cl_.queue), "clFinish");
    all.check();
  }

 private:
  void enqueue(const Slot& slot, Products& all, float* result) {
    const std::size_t bytes = all.n * all.n * sizeof(float), sizes[2] = {all.n, all.n};
    const int n = static_cast<int>(all.n);
    const cl_command_queue queue = cl_.queue;
    clEnqueueWriteBuffer(queue, slot.a, CL_FALSE, 0, bytes, all.a.data(), 0, nullptr, nullptr);
    clEnqueueWriteBuffer(queue, slot.b, CL_FALSE, 0, bytes, all.b.data(), 0, nullptr, nullptr);
    clSetKernelArg(slot.kernel, 0, sizeof slot.a, &slot.a);
    clSetKernelArg(slot.kernel, 1, sizeof slot.b, &slot.b);
    clSetKernelArg(slot.kernel, 2, sizeof n, &n);
    clSetKernelArg(slot.kernel, 3, sizeof slot.c, &slot.c);
    must_cl(clEnqueueNDRangeKernel(queue, slot.kernel, 2, nullptr, sizes,
                                   cl_.group[0] == 0 ? nullptr : cl_.group, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel");
    clEnqueueReadBuffer(queue, slot.c, CL_FALSE, 0, bytes, result, 0, nullptr, nullptr);
  }

  const Opencl& cl_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

class OpenclPeer final : public Peer {
 public:
  explicit OpenclPeer(const Devices& devices)
      : cl_(devices), noop_(cl_.kernel("noop")), memory_(cl_.memory(sizeof(int))) {
    must_cl(clSetKernelArg(noop_, 0, sizeof memory_, &memory_), "clSetKernelArg");
  }
  ~OpenclPeer() override {
    clReleaseMemObject(memory_);
    clReleaseKernel(noop_);
  }

  void run_noops(int tasks, int in_queue) override {
    const std::size_t one = 1;
    for (int i = 0; i < tasks; ++i) {
      must_cl(clEnqueueNDRangeKernel(cl_.queue, noop_, 1, nullptr, &one, nullptr, 0, nullptr,
                                     nullptr),
              "clEnqueueNDRangeKernel");
      if ((i + 1) % in_queue == 0) clFinish(cl_.queue);
    }
    clFinish(cl_.queue);
  }

  std::unique_ptr<Pipeline> products(std::size_t size, int in_queue) override {
    return std::make_unique<OpenclPipeline>(cl_, size, in_queue);
  }

 private:
  const Opencl cl_;
  const cl_kernel noop_;
  const cl_mem memory_;
};

}  // namespace

std::unique_ptr<Peer> make_opencl_peer(const Devices& devices) {
  return std::make_unique<OpenclPeer>(devices);
}

}  // namespace bench
