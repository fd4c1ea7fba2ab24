// SPDX-License-Identifier: Apache-2.0
// The two ways in which the benchmarks of devices do one thing: by Amasia's tasks, and by OpenCL
// itself on the same device, as a straightforward program that waits for each task and as one that
// keeps several in a queue by hand. Both have their program built and their memory made before the
// time is taken. Every result is held against what it must be.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <amasia/mcl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace bench {

inline const char* const kSource =
    "__kernel void noop(__global int* x) { if (x[0] == -1) x[0] = 0; }\n"
    "__kernel void gemm(__global const float* a, __global const float* b, int n,\n"
    "                   __global float* c) {\n"
    "  const int row = get_global_id(0), column = get_global_id(1);\n"
    "  float sum = 0;\n"
    "  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];\n"
    "  c[row * n + column] = sum;\n"
    "}\n";

[[noreturn]] inline void stop(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(1);
}
inline void must(int error, const char* what) {
  if (error != 0) stop(what, *mcl_reason() != '\0' ? mcl_reason() : mcl_strerror(error));
}
inline void must_cl(cl_int error, const char* what) {
  if (error != CL_SUCCESS) stop(what, ("OpenCL error " + std::to_string(error)).c_str());
}

// PoCL's devices, as POCL_DEVICES takes them; both ways see only these.
inline void choose_devices(const char* devices) {
  ::setenv("POCL_DEVICES", devices, 1);
  ::setenv("AMASIA_DEVICES_BACKENDS", "opencl", 0);
}

// A file with the kernels, for as long as it is needed.
class SourceFile {
 public:
  SourceFile() {
    const int descriptor = ::mkstemps(path_.data(), 3);
    if (descriptor < 0 || ::write(descriptor, kSource, std::strlen(kSource)) < 0) {
      stop("the kernels", "cannot be written to the folder for temporary files");
    }
    ::close(descriptor);
  }
  ~SourceFile() { ::unlink(path_.c_str()); }
  char* path() { return path_.data(); }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "amasia-bench-XXXXXX.cl").string();
};

class Amasia {
 public:
  explicit Amasia(unsigned workers) {
    must(mcl_init(workers, 0), "mcl_init");
    int result = 0;
    {
      SourceFile source;  // is removed before must() may end the process
      result = mcl_prg_load(source.path(), nullptr, MCL_PRG_SRC);
    }
    must(result, "mcl_prg_load");
  }
  ~Amasia() { mcl_finit(); }

  static mcl_handle* task(const char* kernel, std::uint64_t arguments) {
    mcl_handle* const handle = mcl_task_create();
    if (handle == nullptr) stop("mcl_task_create", mcl_reason());
    must(mcl_task_set_kernel(handle, const_cast<char*>(kernel), arguments), kernel);
    return handle;
  }
  static void end(mcl_handle* handle) {
    if (handle->ret != static_cast<int>(MCL_RET_SUCCESS)) stop("a task", mcl_task_reason(handle));
    must(mcl_hdl_free(handle), "mcl_hdl_free");
  }
};

// The first device of OpenCL, with one queue.
class Raw {
 public:
  Raw() {
    cl_platform_id platform = nullptr;
    cl_int error = clGetPlatformIDs(1, &platform, nullptr);
    must_cl(error, "clGetPlatformIDs");
    must_cl(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    must_cl(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    must_cl(error, "clCreateCommandQueue");
    const char* text = kSource;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
    must_cl(error, "clCreateProgramWithSource");
    must_cl(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  }
  ~Raw() {
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

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

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
};

}  // namespace bench
