// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of devices do by Amasia's tasks, with the kernels that their peers run too.
// Which devices: PoCL's, as POCL_DEVICES takes them ("pthread", "basic basic"); "gpu", those of
// OpenCL's that are GPUs; "cuda", those of the CUDA driver, with the same kernels in CUDA C++.
#pragma once

#include <amasia/mcl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

inline const char* const kOpenclSource =
    "__kernel void noop(__global int* x) { if (x[0] == -1) x[0] = 0; }\n"
    "__kernel void gemm(__global const float* a, __global const float* b, int n,\n"
    "                   __global float* c) {\n"
    "  const int row = get_global_id(0), column = get_global_id(1);\n"
    "  float sum = 0;\n"
    "  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];\n"
    "  c[row * n + column] = sum;\n"
    "}\n";
inline const char* const kCudaSource =
    "extern \"C\" __global__ void noop(int* x) { if (x[0] == -1) x[0] = 0; }\n"
    "extern \"C\" __global__ void gemm(const float* a, const float* b, int n, float* c) {\n"
    "  const int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  const int column = blockIdx.y * blockDim.y + threadIdx.y;\n"
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

struct Devices {
  explicit Devices(std::string of) : name(std::move(of)) {}
  bool by_cuda() const { return name == "cuda"; }
  bool are_gpus() const { return by_cuda() || name == "gpu"; }
  // Threads of a work group in each of two dimensions; 0: the driver chooses, as CPUs' do well.
  std::size_t group() const { return are_gpus() ? 16 : 0; }
  const char* source() const { return by_cuda() ? kCudaSource : kOpenclSource; }
  std::string name;
};

// For both ways; before either begins.
inline Devices choose_devices(const char* name) {
  const Devices devices(name);
  if (!devices.are_gpus()) ::setenv("POCL_DEVICES", name, 1);
  ::setenv("AMASIA_DEVICES_BACKENDS", devices.by_cuda() ? "cuda" : "opencl", 0);
  return devices;
}

// A file with the kernels, for as long as it is needed.
class SourceFile {
 public:
  explicit SourceFile(const char* source) {
    const int descriptor = ::mkstemps(path_.data(), kEnding.size());
    if (descriptor < 0 || ::write(descriptor, source, std::strlen(source)) < 0) {
      stop("the kernels", "cannot be written to the folder for temporary files");
    }
    ::close(descriptor);
  }
  ~SourceFile() { ::unlink(path_.c_str()); }
  char* path() { return path_.data(); }

 private:
  static constexpr std::string_view kEnding = ".cl";
  // mkstemps writes over the six letters before the ending.
  std::string path_ = std::filesystem::temp_directory_path().string() + "/amasia-bench-" +
                      std::string(6, 'X') + std::string(kEnding);
};

class Amasia {
 public:
  Amasia(const Devices& devices, unsigned workers) {
    must(mcl_init(workers, 0), "mcl_init");
    int result = 0;
    {
      SourceFile source(devices.source());  // is removed before must() may end the process
      result = mcl_prg_load(source.path(), nullptr, devices.by_cuda() ? MCL_PRG_CUDA : MCL_PRG_SRC);
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

}  // namespace bench
