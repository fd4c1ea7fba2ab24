// SPDX-License-Identifier: Apache-2.0
// Which devices there are, and who shares a built program.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <optional>

#include "devices/backends/built_programs.hpp"
#include "devices/backends/opencl/opencl.hpp"
#include "devices/backends/opencl/opencl_device.hpp"
#include "devices/backends/same_device.hpp"

namespace amasia::devices {
namespace opencl {
namespace {

class OpenclBackend final : public Backend {
 public:
  OpenclBackend(std::vector<std::unique_ptr<Device>> devices, ProgramCache& cache)
      : devices_(std::move(devices)), cache_(cache) {
    for (const auto& device : devices_) descriptions_.push_back(device->description);
    identify_by_address(descriptions_);
  }

  std::string_view name() const override { return "opencl"; }
  const std::vector<DeviceDescription>& devices() const override { return descriptions_; }
  ProgramKinds takes(LocalDevice local) const override { return devices_[local]->takes(); }

  bool runs_in_caller(LocalDevice local) const override {
    return devices_[local]->runs_in_caller();
  }

  std::unique_ptr<LoadedKernel> load(LocalDevice local, const ProgramCode& code,
                                     const std::string& kernel, std::size_t argument_count,
                                     Outcome* outcome) override {
    Device& device = at(local);
    auto program = programs_.find_or_build(
        local, code, [&] { return Program::build(device, code, cache_, outcome); });
    if (program == nullptr) return nullptr;
    return Kernel::make(device, std::move(program), kernel, argument_count, outcome);
  }

  std::unique_ptr<DeviceBuffer> allocate(LocalDevice local, Bytes size, void* host,
                                         Outcome* outcome) override {
    return Buffer::make(at(local), size, host, outcome);
  }

  void submit(const Work& work, Completion& completion) override {
    const Submission one{work, &completion};
    at(work.device).submit({&one, 1});
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

std::vector<cl_platform_id> platforms_of(const Library& cl) {
  cl_uint count = 0;
  // The loader answers an error, not none, where no driver is installed.
  if (cl.GetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> platforms(count);
  if (cl.GetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  return platforms;
}

std::vector<cl_device_id> devices_of(const Library& cl, cl_platform_id platform) {
  cl_uint count = 0;
  if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(count);
  if (count == 0 || cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(),
                                    nullptr) != CL_SUCCESS) {
    return {};
  }
  return devices;
}

// PoCL's threads run kernels. The one that submits wakes them with each command, while it holds the
// lock that they need: where they take its core at once they sleep again at once.
bool computes_in_threads(const std::string& platform_name) {
  return platform_name == "Portable Computing Language";
}

std::vector<std::unique_ptr<Device>> open_devices(const Library& cl, Ends ends) {
  std::vector<std::unique_ptr<Device>> opened;
  std::map<std::string, int> alike;  // devices of one platform and name, which are numbered
  for (const cl_platform_id platform : platforms_of(cl)) {
    const std::string platform_name = platform_text(cl, platform, CL_PLATFORM_NAME);
    std::optional<os::BatchScope> batch;
    if (computes_in_threads(platform_name)) batch.emplace();
    for (const cl_device_id device : devices_of(cl, platform)) {
      std::string identity =
          fmt::format("opencl/{}/{}", platform_name, device_text(cl, device, CL_DEVICE_NAME));
      identity.resize(std::min(identity.size(), kMaxIdentity - 8));
      identity += fmt::format("/{}", alike[identity]++);
      auto result = Device::open(cl, platform, device, std::move(identity), ends);
      if (result) {
        opened.push_back(std::move(result).value());
      } else {
        base::log_line(base::LogLevel::kWarning, "{}", result.error().message);
      }
    }
  }
  return opened;
}

}  // namespace
}  // namespace opencl

std::unique_ptr<Backend> make_opencl_backend(ProgramCache& cache, std::string* why) {
  return make_opencl_backend(cache, why, opencl::Ends::kAsSuits);
}

std::unique_ptr<Backend> make_opencl_backend(ProgramCache& cache, std::string* why,
                                             opencl::Ends ends) {
  const auto library = opencl::load_library();
  if (!library) {
    *why = library.error().message;
    return nullptr;
  }
  // The threads of its drivers are not in a child of fork: what it enqueued would never run.
  static std::atomic<pid_t> drivers_of{0};
  pid_t process = 0;
  if (!drivers_of.compare_exchange_strong(process, ::getpid()) && process != ::getpid()) {
    *why = fmt::format("process {} has used OpenCL before it forked this one, and its drivers do "
                       "not outlive that: fork before mcl_init, or exec", process);
    return nullptr;
  }
  auto devices = opencl::open_devices(*library.value(), ends);
  if (devices.empty()) {
    *why = "no OpenCL driver here has a device";
    return nullptr;
  }
  return std::make_unique<opencl::OpenclBackend>(std::move(devices), cache);
}

}  // namespace amasia::devices
