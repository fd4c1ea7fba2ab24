// SPDX-License-Identifier: Apache-2.0
// By CUDA's driver itself, found at run time as the library does, so that the benchmark builds
// where no CUDA is. It has a context of its own: Amasia makes threads that wait in the GPU's
// primary one sleep, where a program of its own would have them spin.
#include <dlfcn.h>

#include <cstring>

#include "devices/backends/cuda/cuda_program.hpp"
#include "peer.hpp"

namespace bench {
namespace {

namespace driver = amasia::devices::cuda;

struct Cuda {
  // The context stays the calling thread's: Amasia's calls leave a thread the one that it had.
  Cuda() {
    const auto loaded = driver::load_driver();
    if (!loaded) stop("CUDA", loaded.error().message.c_str());
    cu = loaded.value();
    using Create = driver::CUresult (*)(driver::CUcontext*, unsigned, driver::CUdevice);
    const auto create = reinterpret_cast<Create>(
        ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuCtxCreate_v2"));
    if (create == nullptr) stop("CUDA", "its driver has no cuCtxCreate_v2");
    driver::CUdevice device = 0;
    must(cu->DeviceGet(&device, 0), "cuDeviceGet");
    must(create(&context, 0, device), "cuCtxCreate");
    load(device);
  }
  void must(driver::CUresult error, const char* what) const {
    if (error != driver::kSuccess) stop(what, cu->text_of(error).c_str());
  }

  driver::CUfunction kernel(const char* name) const {
    driver::CUfunction found = nullptr;
    must(cu->ModuleGetFunction(&found, module, name), name);
    return found;
  }
  driver::CUdeviceptr memory(std::size_t bytes) const {
    driver::CUdeviceptr made = 0;
    must(cu->MemAlloc(&made, bytes), "cuMemAlloc");
    return made;
  }
  driver::CUstream stream() const {
    driver::CUstream made = nullptr;
    must(cu->StreamCreate(&made, driver::kStreamNonBlocking), "cuStreamCreate");
    return made;
  }
  void launch(driver::CUfunction kernel, unsigned blocks, unsigned threads, driver::CUstream in,
              void** parameters) const {
    must(cu->LaunchKernel(kernel, blocks, blocks, 1, threads, threads, 1, 0, in, parameters,
                          nullptr),
         "cuLaunchKernel");
  }
  void await(driver::CUstream stream) const {
    must(cu->StreamSynchronize(stream), "cuStreamSynchronize");
  }

  const driver::Driver* cu = nullptr;
  driver::CUcontext context = nullptr;
  driver::CUmodule module = nullptr;

 private:
  void load(driver::CUdevice device) {
    const auto compiler = driver::load_compiler();
    if (!compiler) stop("CUDA", compiler.error().message.c_str());
    int major = 0, minor = 0;
    cu->DeviceGetAttribute(&major, driver::kComputeCapabilityMajor, device);
    cu->DeviceGetAttribute(&minor, driver::kComputeCapabilityMinor, device);
    amasia::devices::ProgramCode code;
    code.kind = amasia::devices::ProgramKind::kCudaSource;
    code.code = kCudaSource;
    amasia::devices::Outcome outcome;
    const std::string image =
        driver::compile(*compiler.value(), code, 10 * major + minor, &outcome);
    if (image.empty()) stop("CUDA", outcome.message.c_str());
    must(cu->ModuleLoadData(&module, image.data()), "cuModuleLoadData");
  }
};

struct Slot {
  Slot(const Cuda& cuda, std::size_t bytes)
      : stream(cuda.stream()),
        a(cuda.memory(bytes)),
        b(cuda.memory(bytes)),
        c(cuda.memory(bytes)) {}
  driver::CUstream stream;
  driver::CUdeviceptr a, b, c;
  // Pinned memory, where copies shall not hold up the thread that begins them; else the products'
  // own is used.
  float *pinned_a = nullptr, *pinned_b = nullptr, *pinned_c = nullptr;
  float* result = nullptr;  // where the pinned one is to go
};

// Memory and streams go with the process, as does the context.
class CudaPipeline final : public Peer::Pipeline {
 public:
  CudaPipeline(const Cuda& cuda, std::size_t size, int in_queue)
      : cuda_(cuda), kernel_(cuda.kernel("gemm")), bytes_(size * size * sizeof(float)) {
    for (int i = 0; i < in_queue; ++i) {
      Slot& slot = slots_.emplace_back(cuda, bytes_);
      if (in_queue == 1) break;
      for (float** const pinned : {&slot.pinned_a, &slot.pinned_b, &slot.pinned_c}) {
        cuda.must(cuda.cu->MemHostAlloc(reinterpret_cast<void**>(pinned), bytes_, 0),
                  "cuMemHostAlloc");
      }
    }
  }

  void run(Products& all) override {
    std::size_t next = 0;
    for (auto& result : all.c) {
      Slot& slot = slots_[next];
      end(slot);
      begin(slot, all, result.data());
      next = (next + 1) % slots_.size();
    }
    for (Slot& slot : slots_) end(slot);
    all.check();
  }

 private:
  void begin(Slot& slot, Products& all, float* result) {
    const float *from_a = all.a.data(), *from_b = all.b.data();
    float* to = result;
    if (slot.pinned_a != nullptr) {
      from_a = static_cast<float*>(std::memcpy(slot.pinned_a, from_a, bytes_));
      from_b = static_cast<float*>(std::memcpy(slot.pinned_b, from_b, bytes_));
      to = slot.pinned_c;
    }
    int n = static_cast<int>(all.n);
    const driver::Driver& cu = *cuda_.cu;
    cuda_.must(cu.MemcpyHtoDAsync(slot.a, from_a, bytes_, slot.stream), "a copy");
    cuda_.must(cu.MemcpyHtoDAsync(slot.b, from_b, bytes_, slot.stream), "a copy");
    void* parameters[] = {&slot.a, &slot.b, &n, &slot.c};
    cuda_.launch(kernel_, static_cast<unsigned>(n) / 16, 16, slot.stream, parameters);
    cuda_.must(cu.MemcpyDtoHAsync(to, slot.c, bytes_, slot.stream), "a copy");
    slot.result = result;
  }
  void end(Slot& slot) {
    if (slot.result == nullptr) return;
    cuda_.await(slot.stream);
    if (slot.pinned_c != nullptr) std::memcpy(slot.result, slot.pinned_c, bytes_);
    slot.result = nullptr;
  }

  const Cuda& cuda_;
  const driver::CUfunction kernel_;
  const std::size_t bytes_;
  std::vector<Slot> slots_;
};

class CudaPeer final : public Peer {
 public:
  void run_noops(int tasks, int in_queue) override {
    void* parameters[] = {&memory_};
    for (int i = 0; i < tasks; ++i) {
      cuda_.launch(noop_, 1, 1, stream_, parameters);
      if ((i + 1) % in_queue == 0) cuda_.await(stream_);
    }
    cuda_.await(stream_);
  }
  std::unique_ptr<Pipeline> products(std::size_t size, int in_queue) override {
    return std::make_unique<CudaPipeline>(cuda_, size, in_queue);
  }

 private:
  const Cuda cuda_;
  const driver::CUfunction noop_ = cuda_.kernel("noop");
  const driver::CUstream stream_ = cuda_.stream();
  driver::CUdeviceptr memory_ = cuda_.memory(sizeof(int));
};

}  // namespace

std::unique_ptr<Peer> make_cuda_peer() { return std::make_unique<CudaPeer>(); }

}  // namespace bench
