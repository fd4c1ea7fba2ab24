// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/opencl/opencl_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "devices/backends/same_device.hpp"

namespace amasia::devices::opencl {
namespace {

// A driver that is asked for events' states holds up who enqueues.
constexpr Nanos kLooksWhileSubmitting = 32 * base::kMicrosecond;

template <typename T>
T device_value(const Library& cl, cl_device_id device, cl_device_info what, T otherwise) {
  T value{};
  return cl.GetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value
                                                                                     : otherwise;
}

DeviceClass class_of(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return DeviceClass::kGpu;
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return DeviceClass::kCpu;
  return DeviceClass::kAccelerator;
}

// What a device keeps of freed memory, of which the daemon does not know.
Bytes most_spare(const DeviceDescription& device) {
  return device.device_class == DeviceClass::kCpu
             ? std::min<Bytes>(device.memory / 64, 64 * base::kMiB)
             : spare_of_gpu(device.memory);
}

bool has_word(const std::string& list, std::string_view word) {
  return (" " + list + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// SPIR-V goes in by the core function from 2.1 on, else by that of cl_khr_il_program, which has the
// same signature.
decltype(&::clCreateProgramWithIL) il_function(const Library& cl, cl_platform_id platform,
                                               cl_device_id device) {
  if (device_text(cl, device, CL_DEVICE_IL_VERSION).find("SPIR-V") == std::string::npos) {
    return nullptr;
  }
  if (has_word(device_text(cl, device, CL_DEVICE_EXTENSIONS), "cl_khr_il_program")) {
    if (void* const found =
            cl.GetExtensionFunctionAddressForPlatform(platform, "clCreateProgramWithILKHR")) {
      return reinterpret_cast<decltype(&::clCreateProgramWithIL)>(found);
    }
  }
  return cl.CreateProgramWithIL;
}

}  // namespace

std::string device_text(const Library& cl, cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (cl.GetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (cl.GetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(std::strlen(text.c_str()));
  return text;
}

std::string platform_text(const Library& cl, cl_platform_id platform, cl_platform_info what) {
  std::size_t size = 0;
  if (cl.GetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  if (cl.GetPlatformInfo(platform, what, size, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(std::strlen(text.c_str()));
  return text;
}

std::string pci_of(const Library& cl, cl_device_id device) {
  // Numbers of cl_ext.h; older headers lack some of them.
  constexpr cl_device_info kBusNv = 0x4008, kSlotNv = 0x4009, kDomainNv = 0x400A;
  constexpr cl_device_info kInfoKhr = 0x410F;
  const std::string extensions = device_text(cl, device, CL_DEVICE_EXTENSIONS);
  if (has_word(extensions, "cl_khr_pci_bus_info")) {
    PciAddress address;  // as cl_device_pci_bus_info_khr: domain, bus, device, function
    static_assert(sizeof address == 4 * sizeof(cl_uint));
    if (cl.GetDeviceInfo(device, kInfoKhr, sizeof address, &address, nullptr) == CL_SUCCESS) {
      return text_of(address);
    }
  }
  if (!has_word(extensions, "cl_nv_device_attribute_query")) return "";
  constexpr cl_uint kUnknown = ~0U;
  const auto bus = device_value<cl_uint>(cl, device, kBusNv, kUnknown);
  const auto slot = device_value<cl_uint>(cl, device, kSlotNv, kUnknown);  // device and function
  if (bus == kUnknown || slot == kUnknown) return "";
  return text_of({device_value<cl_uint>(cl, device, kDomainNv, 0), bus, slot >> 3, slot & 7});
}

Result<std::unique_ptr<Device>> Device::open(const Library& library, cl_platform_id platform,
                                             cl_device_id device, std::string identity,
                                             Ends ends) {
  std::unique_ptr<Device> opened(new Device(library, platform, device));
  cl_int error = CL_SUCCESS;
  opened->context = library.CreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  if (opened->context == nullptr) {
    return Error{fmt::format("cannot use {}: {}", identity, name_of_error(error))};
  }
  opened->describe(std::move(identity));
  const bool is_watched =
      ends == Ends::kLookedFor || opened->description.device_class != DeviceClass::kCpu;
  for (const bool profiles : {true, false}) {
    if (!profiles && !is_watched) continue;
    for (std::size_t i = 0; i < kQueues; ++i) {
      Queue& queue = opened->queues.emplace_back();
      queue.profiles = profiles;
      queue.handle = library.CreateCommandQueue(
          opened->context, device, profiles ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
      if (queue.handle == nullptr) {
        return Error{fmt::format("cannot use {}: {}", opened->description.identity,
                                 name_of_error(error))};
      }
    }
  }
  opened->runs_in_caller_ = opened->finds_commands_run_by_caller();
  if (!is_watched) return opened;
  std::vector<Line*> lines;
  for (Queue& queue : opened->queues) lines.push_back(&queue);
  opened->watch.emplace(std::move(lines), kLooksWhileSubmitting);
  if (auto started = opened->watch->start("amasia-opencl"); !started) return started.error();
  return opened;
}

Device::~Device() {
  watch.reset();
  for (Queue& queue : queues) {
    if (queue.handle == nullptr) continue;
    cl.Finish(queue.handle);
    cl.ReleaseCommandQueue(queue.handle);
  }
  release_spare();
  if (context != nullptr) cl.ReleaseContext(context);
}

void Device::describe(std::string identity) {
  DeviceDescription& d = description;
  const auto type = device_value<cl_device_type>(cl, handle, CL_DEVICE_TYPE, CL_DEVICE_TYPE_CPU);
  d.identity = std::move(identity);
  d.pci = pci_of(cl, handle);
  d.name = device_text(cl, handle, CL_DEVICE_NAME);
  d.vendor = device_text(cl, handle, CL_DEVICE_VENDOR);
  d.platform = platform_text(cl, platform, CL_PLATFORM_VERSION);
  d.backend = "opencl";
  d.device_class = class_of(type);
  d.compute_units = device_value<cl_uint>(cl, handle, CL_DEVICE_MAX_COMPUTE_UNITS, 1);
  d.max_dimensions =
      std::min(3U, device_value<cl_uint>(cl, handle, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 1));
  d.max_work_group = device_value<std::size_t>(cl, handle, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1);
  std::size_t sizes[16] = {};
  if (cl.GetDeviceInfo(handle, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, nullptr) ==
      CL_SUCCESS) {
    std::copy_n(sizes, d.max_dimensions, d.max_work_sizes);
  }
  d.memory = device_value<cl_ulong>(cl, handle, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
  d.max_allocation = device_value<cl_ulong>(cl, handle, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
  {
    const os::MutexLock lock(spare_mutex_);
    spare_ = SpareMemory(most_spare(d));
  }
  // Only of CPUs: with other devices memory in use by both must be mapped and unmapped for each
  // task, which costs more than a copy of what tasks have.
  d.shares_host_memory = (type & CL_DEVICE_TYPE_CPU) != 0;
  // A CPU's device with several tasks has a next one when one ends; a GPU overlaps copies too.
  d.queue_depth = d.device_class == DeviceClass::kCpu ? 4 : 16;
  alignment = std::max<Bytes>(
      1, device_value<cl_uint>(cl, handle, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024) / 8);
  driver = fmt::format("{}; {}; {}; {}", d.vendor, d.platform,
                       device_text(cl, handle, CL_DEVICE_VERSION),
                       device_text(cl, handle, CL_DRIVER_VERSION));
  create_with_il = il_function(cl, platform, handle);
}

// PoCL's names of such a device differ from version to version, so it is asked to call a function:
// by which thread? Not where there are more units, as the driver has threads for them.
bool Device::finds_commands_run_by_caller() {
  const auto can = device_value<cl_device_exec_capabilities>(cl, handle,
                                                             CL_DEVICE_EXECUTION_CAPABILITIES, 0);
  const bool is_one_core =
      description.device_class == DeviceClass::kCpu && description.compute_units == 1;
  if (!is_one_core || (can & CL_EXEC_NATIVE_KERNEL) == 0) return false;
  std::thread::id* told = &called_by_;
  const auto tell = [](void* word) {
    **static_cast<std::thread::id**>(word) = std::this_thread::get_id();
  };
  const cl_command_queue queue = queues.front().handle;
  const bool called = cl.EnqueueNativeKernel(queue, tell, &told, sizeof told, 0, nullptr, nullptr,
                                             0, nullptr, nullptr) == CL_SUCCESS &&
                      cl.Finish(queue) == CL_SUCCESS;
  return called && called_by_ == std::this_thread::get_id();
}

cl_mem Device::take_memory(Bytes size, cl_int* error) {
  {
    const os::MutexLock lock(spare_mutex_);
    if (const std::uint64_t kept = spare_.take(size)) {
      return reinterpret_cast<cl_mem>(kept);
    }
  }
  if (const cl_mem made = make_memory(size, error)) return made;
  release_spare();
  return make_memory(size, error);
}

// Of a CPU it is our own, so that we know where it is. The driver may use it for a moment longer
// than we do: it says when it does no more.
cl_mem Device::make_memory(Bytes size, cl_int* error) const {
  if (!description.shares_host_memory) {
    return cl.CreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, error);
  }
  const Bytes rounded = (size + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return nullptr;
  }
  const cl_mem made = cl.CreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size,
                                      memory, error);
  const auto free_memory = [](cl_mem, void* its) { std::free(its); };
  if (made == nullptr) {
    std::free(memory);
  } else if (cl.SetMemObjectDestructorCallback(made, free_memory, memory) != CL_SUCCESS) {
    cl.ReleaseMemObject(made);
    std::free(memory);
    *error = CL_OUT_OF_HOST_MEMORY;
    return nullptr;
  }
  return made;
}

std::byte* Device::address_of(cl_mem memory) const {
  void* address = nullptr;
  if (!description.shares_host_memory ||
      cl.GetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof address, &address, nullptr) !=
          CL_SUCCESS) {
    return nullptr;
  }
  return static_cast<std::byte*>(address);
}

void Device::give_memory(cl_mem memory, Bytes size) {
  std::vector<std::uint64_t> to_free;
  {
    const os::MutexLock lock(spare_mutex_);
    to_free = spare_.put(reinterpret_cast<std::uint64_t>(memory), size);
  }
  for (const std::uint64_t one : to_free) cl.ReleaseMemObject(reinterpret_cast<cl_mem>(one));
}

void Device::release_spare() {
  std::vector<std::uint64_t> all;
  {
    const os::MutexLock lock(spare_mutex_);
    all = spare_.take_all();
  }
  for (const std::uint64_t one : all) cl.ReleaseMemObject(reinterpret_cast<cl_mem>(one));
}

Queue& Device::least_busy_queue(bool profiles) {
  Queue* best = nullptr;
  for (Queue& queue : queues) {
    if (queue.profiles != (profiles || !watch)) continue;
    if (best == nullptr || queue.works.load(std::memory_order_relaxed) <
                               best->works.load(std::memory_order_relaxed)) {
      best = &queue;
    }
  }
  return *best;
}

// Kernels may read a buffer as vectors, which code for CPUs takes to be aligned as memory of the
// device's own is.
bool Device::may_use_in_place(const void* host) const {
  return description.shares_host_memory && host != nullptr &&
         reinterpret_cast<std::uintptr_t>(host) % alignment == 0;
}

ProgramKinds Device::takes() const {
  ProgramKinds kinds = set_of(ProgramKind::kSource) | set_of(ProgramKind::kBinary) |
                       set_of(ProgramKind::kBuiltIn) | set_of(ProgramKind::kGraph);
  if (create_with_il != nullptr) kinds |= set_of(ProgramKind::kSpirv);
  return kinds;
}

std::unique_ptr<Buffer> Buffer::make(Device& device, Bytes size, void* host, Outcome* outcome) {
  const bool in_place = device.may_use_in_place(host);
  // A driver that takes memory only when it is used (NVIDIA's) would not say so.
  const bool is_too_much = size > device.description.memory;
  cl_int error = is_too_much ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
  const cl_mem handle =
      is_too_much ? nullptr
      : in_place  ? device.cl.CreateBuffer(device.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                           size, host, &error)
                  : device.take_memory(size, &error);
  if (handle == nullptr) {
    *outcome = failed(Failure::kDeviceMemory,
                      fmt::format("{} has no memory for a buffer of {} bytes ({} of {}): {}",
                                  device.description.name, size, device.description.max_allocation,
                                  device.description.memory, name_of_error(error)));
    return nullptr;
  }
  return std::make_unique<Buffer>(device, handle, size, in_place);
}

}  // namespace amasia::devices::opencl
