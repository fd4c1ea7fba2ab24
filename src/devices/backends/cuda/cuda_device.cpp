// SPDX-License-Identifier: Apache-2.0
// The device itself: opening, what it is, memory, programs.
#include "devices/backends/cuda/cuda_device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "devices/backends/cuda/cuda_program.hpp"
#include "devices/backends/same_device.hpp"

namespace amasia::devices::cuda {
namespace {

// Of pinned memory: some tasks of 4 MiB each, but no large part of the host's.
Bytes most_pinned() {
  const Bytes host = static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  return std::min<Bytes>(256 * base::kMiB, host / 64);
}

}  // namespace

InContext::InContext(const Device& device) : cuda_(device.cuda) {
  cuda_.CtxPushCurrent(device.context);
}

InContext::~InContext() {
  CUcontext mine = nullptr;
  cuda_.CtxPopCurrent(&mine);
}

Result<std::unique_ptr<Device>> Device::open(const Driver& cuda, int ordinal) {
  std::unique_ptr<Device> device(new Device(cuda));
  CUresult error = cuda.DeviceGet(&device->handle, ordinal);
  // Threads that wait within the driver sleep; refused where another library was first.
  if (error == kSuccess) cuda.PrimaryCtxSetFlags(device->handle, kContextBlockingSync);
  if (error == kSuccess) error = cuda.PrimaryCtxRetain(&device->context, device->handle);
  if (error != kSuccess) {
    return Error{fmt::format("cannot use GPU {}: {}", ordinal, cuda.text_of(error))};
  }
  const InContext in(*device);
  for (Stream& stream : device->streams_) {
    error = cuda.StreamCreate(&stream.handle, kStreamNonBlocking);
    if (error != kSuccess) {
      return Error{fmt::format("cannot use GPU {}: {}", ordinal, cuda.text_of(error))};
    }
  }
  device->describe();
  {
    const os::MutexLock lock(device->mutex_);
    device->spare_ = SpareMemory(spare_of_gpu(device->description.memory));
  }
  device->pinned_.emplace(cuda, most_pinned());
  std::vector<Line*> lines;
  for (Stream& stream : device->streams_) lines.push_back(&stream);
  device->watch_.emplace(std::move(lines));
  if (auto started = device->watch_->start("amasia-cuda"); !started) return started.error();
  return device;
}

Device::~Device() {
  watch_.reset();
  if (context == nullptr) return;
  {
    const InContext in(*this);
    for (Stream& stream : streams_) {
      if (stream.handle == nullptr) continue;
      cuda.StreamSynchronize(stream.handle);
      cuda.StreamDestroy(stream.handle);
    }
    const os::MutexLock lock(mutex_);
    for (const CUdeviceptr address : spare_.take_all()) cuda.MemFree(address);
    pinned_.reset();
    flights_.clear();
  }
  cuda.PrimaryCtxRelease(handle);
}

void Device::describe() {
  const auto attribute = [&](int which) {
    int value = 0;
    cuda.DeviceGetAttribute(&value, which, handle);
    return value;
  };
  char name[256] = "";
  CUuuid uuid{};
  std::size_t memory = 0;
  int version = 0;
  cuda.DeviceGetName(name, sizeof name, handle);
  cuda.DeviceGetUuid(&uuid, handle);
  cuda.DeviceTotalMem(&memory, handle);
  cuda.DriverGetVersion(&version);
  capability = 10 * attribute(kComputeCapabilityMajor) + attribute(kComputeCapabilityMinor);

  DeviceDescription& d = description;
  d.identity = "cuda/GPU-";
  for (const char byte : uuid.bytes) {
    d.identity += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  d.pci = pci_of(cuda, handle);
  d.name = name;
  d.vendor = "NVIDIA Corporation";
  d.platform = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  d.backend = "cuda";
  d.device_class = DeviceClass::kGpu;
  d.compute_units = static_cast<std::uint32_t>(attribute(kMultiprocessorCount));
  d.max_work_group = static_cast<std::uint64_t>(attribute(kMaxThreadsPerBlock));
  for (int i = 0; i < 3; ++i) {
    d.max_work_sizes[i] = static_cast<std::uint64_t>(attribute(kMaxBlockDimX + i));
  }
  d.memory = d.max_allocation = memory;
  d.queue_depth = 2 * kStreams;
}

std::string pci_of(const Driver& cuda, CUdevice device) {
  char text[32] = "";
  if (cuda.DeviceGetPCIBusId == nullptr ||
      cuda.DeviceGetPCIBusId(text, sizeof text, device) != kSuccess) {
    return "";
  }
  const auto address = parse_pci(text);
  return address ? text_of(*address) : "";
}

// Blocks that were given back are used again first; when the device has no more, all of them go
// back to the driver and it is asked once more.
Result<CUdeviceptr> Device::take_memory(Bytes rounded) {
  std::vector<std::uint64_t> spare;
  {
    const os::MutexLock lock(mutex_);
    if (const CUdeviceptr address = spare_.take(rounded)) return address;
  }
  const InContext in(*this);
  CUdeviceptr address = 0;
  CUresult error = cuda.MemAlloc(&address, rounded);
  if (error == kOutOfMemory) {
    {
      const os::MutexLock lock(mutex_);
      spare = spare_.take_all();
    }
    for (const CUdeviceptr one : spare) cuda.MemFree(one);
    error = cuda.MemAlloc(&address, rounded);
  }
  if (error != kSuccess) return Error{cuda.text_of(error), error};
  return address;
}

void Device::give_memory(CUdeviceptr address, Bytes rounded) {
  std::vector<std::uint64_t> to_free;
  {
    const os::MutexLock lock(mutex_);
    to_free = spare_.put(address, rounded);
  }
  if (to_free.empty()) return;
  const InContext in(*this);
  for (const CUdeviceptr one : to_free) cuda.MemFree(one);
}

std::unique_ptr<Memory> Memory::make(Device& device, Bytes size, Outcome* outcome) {
  const Bytes rounded = rounded_size(size);
  if (rounded < size || rounded > device.description.memory) {
    *outcome = failed(Failure::kDeviceMemory,
                      fmt::format("{} has no memory for a buffer of {} bytes (of {})",
                                  device.description.name, size, device.description.memory));
    return nullptr;
  }
  const auto address = device.take_memory(rounded);
  if (!address) {
    *outcome = failed(Failure::kDeviceMemory,
                      fmt::format("{} has no memory for a buffer of {} bytes (of {}): {}",
                                  device.description.name, size, device.description.memory,
                                  address.error().message));
    return nullptr;
  }
  return std::make_unique<Memory>(device, address.value(), rounded);
}

Memory::~Memory() { device_.give_memory(address, rounded_); }

std::shared_ptr<Program> Program::load(Device& device, const ProgramCode& code,
                                       ProgramCache& cache, Outcome* outcome) {
  std::string image;
  if (code.kind == ProgramKind::kCudaSource) {
    image = compile_cached(code, device.capability, cache, outcome);
    if (image.empty()) return nullptr;
  } else if (code.kind == ProgramKind::kBinary) {
    image = code.code + '\0';  // PTX is text with a final zero; after a cubin it does no harm
  } else {
    *outcome = failed(Failure::kUnsupported,
                      fmt::format("{} cannot load {}: CUDA takes CUDA C++, cubin, fatbin and PTX",
                                  device.description.name, title_of(code)));
    return nullptr;
  }
  const InContext in(device);
  CUmodule module = nullptr;
  const CUresult error = device.cuda.ModuleLoadData(&module, image.data());
  if (error != kSuccess) {
    *outcome = failed(error == kOutOfMemory ? Failure::kDeviceMemory : Failure::kBuild,
                      fmt::format("{} is not taken by {}: {}", title_of(code),
                                  device.description.name, device.cuda.text_of(error)));
    return nullptr;
  }
  return std::make_shared<Program>(device, module);
}

Program::~Program() {
  const InContext in(device_);
  device_.cuda.ModuleUnload(module_);
}

std::unique_ptr<Kernel> Kernel::make(Device& device, std::shared_ptr<Program> program,
                                     const std::string& name, std::size_t argument_count,
                                     Outcome* outcome) {
  const Driver& cuda = device.cuda;
  const InContext in(device);
  auto kernel = std::make_unique<Kernel>();
  const CUresult error =
      cuda.ModuleGetFunction(&kernel->function, program->module(), name.c_str());
  if (error != kSuccess) {
    *outcome = error == kNotFound
                   ? failed(Failure::kNoKernel,
                            fmt::format("the program has no kernel '{}' for {} (is it extern "
                                        "\"C\"?)", name, device.description.name))
                   : failed(Failure::kDevice, fmt::format("cannot load the kernel '{}': {}", name,
                                                          cuda.text_of(error)));
    return nullptr;
  }
  kernel->name = name;
  int most = 0;
  cuda.FuncGetAttribute(&most, kFunctionMaxThreadsPerBlock, kernel->function);
  kernel->most_threads = static_cast<unsigned>(std::max(most, 1));
  if (cuda.FuncGetParamInfo != nullptr) {
    std::size_t offset = 0, size = 0;
    while (cuda.FuncGetParamInfo(kernel->function, kernel->sizes.size(), &offset, &size) ==
           kSuccess) {
      kernel->sizes.push_back(size);
    }
    kernel->sizes_known = true;
  }
  *outcome = kernel->refuses(argument_count);
  if (outcome->failure != Failure::kNone) return nullptr;
  kernel->program_ = std::move(program);
  return kernel;
}

// Arguments in memory of the group are no parameters, and which those are is not known yet.
Outcome Kernel::refuses(std::size_t count) const {
  if (!sizes_known || sizes.size() <= count) return {};
  return failed(Failure::kArguments, fmt::format("the kernel '{}' takes {} arguments, not {}", name,
                                                 sizes.size(), count));
}

Outcome Kernel::refuses(std::span<const ArgumentShape> shapes) const {
  return sizes_known ? wrong_parameters(name, sizes, parameter_sizes(shapes)) : Outcome{};
}

// To make one takes 80 us: not for a kernel that is launched so a few times only.
std::unique_ptr<Row> Kernel::take_row(const Device& device, std::span<Launch> launches) {
  constexpr unsigned kWantedFirst = 4;
  std::unique_ptr<Row> row;
  {
    const os::MutexLock lock(rows_mutex_);
    if (has_no_rows_ || ++rows_wanted_ < kWantedFirst) return nullptr;
    const auto idle = std::find_if(idle_rows_.rbegin(), idle_rows_.rend(), [&](const auto& one) {
      return one->length() == launches.size();
    });
    if (idle != idle_rows_.rend()) {
      row = std::move(*idle);
      idle_rows_.erase(std::prev(idle.base()));
    }
  }
  if (row != nullptr) return row->set(launches) ? std::move(row) : nullptr;
  row = Row::make(device, function, launches);
  if (row == nullptr) {
    const os::MutexLock lock(rows_mutex_);
    has_no_rows_ = true;
  }
  return row;
}

void Kernel::give_row(std::unique_ptr<Row> row) {
  const os::MutexLock lock(rows_mutex_);
  idle_rows_.push_back(std::move(row));
}

}  // namespace amasia::devices::cuda
