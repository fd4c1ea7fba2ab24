// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "devices/backends/built_programs.hpp"
#include "devices/backends/cuda/cuda.hpp"
#include "devices/backends/cuda/cuda_device.hpp"
#include "devices/backends/same_device.hpp"

namespace amasia::devices {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::vector<std::unique_ptr<Device>> devices, ProgramCache& cache)
      : devices_(std::move(devices)), cache_(cache) {
    for (const auto& device : devices_) descriptions_.push_back(device->description);
    identify_by_address(descriptions_);
  }

  std::string_view name() const override { return "cuda"; }
  const std::vector<DeviceDescription>& devices() const override { return descriptions_; }
  ProgramKinds takes(LocalDevice) const override {
    return set_of(ProgramKind::kCudaSource) | set_of(ProgramKind::kBinary);
  }

  std::unique_ptr<LoadedKernel> load(LocalDevice local, const ProgramCode& code,
                                     const std::string& kernel, std::size_t argument_count,
                                     Outcome* outcome) override {
    Device& device = at(local);
    auto program = programs_.find_or_build(
        local, code, [&] { return Program::load(device, code, cache_, outcome); });
    if (program == nullptr) return nullptr;
    return Kernel::make(device, std::move(program), kernel, argument_count, outcome);
  }

  std::unique_ptr<DeviceBuffer> allocate(LocalDevice local, Bytes size, void*,
                                         Outcome* outcome) override {
    return Memory::make(at(local), size, outcome);
  }

  // The driver takes 12 us for a product of 64 with its copies, 9 where two threads submit (H200).
  bool takes_copies_from_many(LocalDevice) const override { return true; }
  void submit(const Work& work, Completion& completion) override {
    at(work.device).submit(work, completion);
  }
  void submit_all(std::span<const Submission> all) override {
    by_device(all, [&](LocalDevice device, auto works) { at(device).submit(works); });
  }
  void wait_for(Completion& completion, Nanos deadline) override {
    Watch::wait_sent(completion, deadline);
  }

 private:
  Device& at(LocalDevice local) {
    AMASIA_CHECK(local < devices_.size(), "a device that this back end does not have");
    return *devices_[local];
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<DeviceDescription> descriptions_;
  ProgramCache& cache_;
  BuiltPrograms<Program> programs_;  // goes before the devices
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(ProgramCache& cache, std::string* why) {
  const auto driver = cuda::load_driver();
  if (!driver) {
    *why = driver.error().message;
    return nullptr;
  }
  int count = 0;
  std::vector<std::unique_ptr<cuda::Device>> devices;
  if (const auto error = driver.value()->DeviceGetCount(&count); error != cuda::kSuccess) {
    *why = "CUDA does not count its devices: " + driver.value()->text_of(error);
    return nullptr;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = cuda::Device::open(*driver.value(), ordinal);
    if (device) {
      devices.push_back(std::move(device).value());
    } else {
      base::log_line(base::LogLevel::kWarning, "{}", device.error().message);
    }
  }
  if (devices.empty()) {
    *why = "the CUDA driver here shows no GPU";
    return nullptr;
  }
  return std::make_unique<cuda::CudaBackend>(std::move(devices), cache);
}

}  // namespace amasia::devices
