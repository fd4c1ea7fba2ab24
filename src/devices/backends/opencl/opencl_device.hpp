// SPDX-License-Identifier: Apache-2.0
// One OpenCL device, what is loaded on it, and works under way.
//
// Who guards what
//   Device        its members are set before it is used, and then constant, but for
//     clock       by clock_mutex
//     waiting_    and busy_: line_mutex_
//     spare_      by spare_mutex_
//   Kernel.idle   by its mutex: clSetKernelArg and the launch of one kernel object may not overlap
//                 with those of another thread, so each launch has an object of its own
//   Flight        one owner at a time: submit(), then the driver's call-back or the watch
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "devices/backends/brief_works.hpp"
#include "devices/backends/device_clock.hpp"
#include "devices/backends/opencl/opencl.hpp"
#include "devices/backends/opencl/opencl_library.hpp"
#include "devices/backends/outcomes.hpp"
#include "devices/backends/program_cache.hpp"
#include "devices/backends/spare_memory.hpp"
#include "devices/backends/watch.hpp"
#include "devices/backends/work_group.hpp"
#include "os/os.hpp"

namespace amasia::devices::opencl {

// Queues run their commands in order; works on different queues overlap where the device can. So
// many of either kind.
inline constexpr std::size_t kQueues = 4;

struct Queue : Line {
  cl_command_queue handle = nullptr;
  bool profiles = true;  // events record times
  Nanos last_end = 0;    // of what stood in it, as it was noticed; has_ended()'s
};

class Device {
 public:
  // Takes the device into use: a context of its own and the queues.
  static Result<std::unique_ptr<Device>> open(const Library& library, cl_platform_id platform,
                                              cl_device_id device, std::string identity,
                                              Ends ends);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The least busy one that records times, or not; on a device where that costs little all do.
  Queue& least_busy_queue(bool profiles);
  bool may_use_in_place(const void* host) const;
  ProgramKinds takes() const;

  const Library& cl;
  const cl_platform_id platform;
  const cl_device_id handle;
  cl_context context = nullptr;
  std::deque<Queue> queues;
  DeviceDescription description;
  std::string driver;       // all that makes its binaries differ from those of another driver
  Bytes alignment = 1;      // of sub-buffers, and of host memory that is used in place
  decltype(&::clCreateProgramWithIL) create_with_il = nullptr;  // nullptr: takes no SPIR-V

  std::optional<Watch> watch;  // none: the driver calls back

  os::Mutex clock_mutex;
  DeviceClock clock AMASIA_GUARDED_BY(clock_mutex);

  // Memory of its own, of exactly that size; nullptr: *error is set. Given back, it may be kept.
  cl_mem take_memory(Bytes size, cl_int* error);
  void give_memory(cl_mem memory, Bytes size);
  // Where the host finds such memory; nullptr: nowhere.
  std::byte* address_of(cl_mem memory) const;

  // See Backend::runs_in_caller().
  bool runs_in_caller() const { return runs_in_caller_; }
  // Begins the works, and their completions are told of their ends.
  void submit(std::span<const Submission> all);

 private:
  void work_off_line();
  void release_spare();
  cl_mem make_memory(Bytes size, cl_int* error) const;
  Device(const Library& library, cl_platform_id of, cl_device_id device)
      : cl(library), platform(of), handle(device) {}
  void describe(std::string identity);
  bool finds_commands_run_by_caller();

  // The driver runs commands in the threads that enqueue them, and does not bear several of those
  // (PoCL's basic device: an event is used after it was freed). One thread at a time works off what
  // all have submitted; the others go on.
  bool runs_in_caller_ = false;
  std::thread::id called_by_;  // where the driver has called a function; it may do so late
  os::Mutex spare_mutex_;
  SpareMemory spare_ AMASIA_GUARDED_BY(spare_mutex_){0};
  os::Mutex line_mutex_;
  std::vector<Submission> waiting_ AMASIA_GUARDED_BY(line_mutex_);
  bool busy_ AMASIA_GUARDED_BY(line_mutex_) = false;
};

// Text that the driver gives of a device or platform; "" where it gives none.
std::string device_text(const Library& cl, cl_device_id device, cl_device_info what);
std::string platform_text(const Library& cl, cl_platform_id platform, cl_platform_info what);

// Where the device sits on the PCI bus, "0000:65:00.0", by the extension of the standard or by
// NVIDIA's; "" where the driver has neither.
std::string pci_of(const Library& cl, cl_device_id device);

// A program, built for one device.
class Program {
 public:
  // Builds it, or takes it from the cache and puts it there. nullptr: *outcome says why.
  static std::shared_ptr<Program> build(Device& device, const ProgramCode& code,
                                        ProgramCache& cache, Outcome* outcome);
  Program(Device& device, cl_program handle) : device_(device), handle_(handle) {}
  ~Program() { device_.cl.ReleaseProgram(handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  cl_program handle() const { return handle_; }

 private:
  Device& device_;
  cl_program handle_;
};

class Kernel final : public LoadedKernel {
 public:
  // nullptr: *outcome says why.
  static std::unique_ptr<Kernel> make(Device& device, std::shared_ptr<Program> program,
                                      const std::string& name, std::size_t argument_count,
                                      Outcome* outcome);
  Kernel(Device& device, std::shared_ptr<Program> program, std::string name, std::size_t arguments)
      : device_(device),
        program_(std::move(program)),
        name_(std::move(name)),
        arguments_(arguments) {}
  ~Kernel() override;

  // A kernel object that no one else uses, until it is given back; nullptr: *error is set.
  cl_kernel take(cl_int* error) const;
  void give_back(cl_kernel kernel) const;
  const std::string& name() const { return name_; }
  std::size_t arguments() const { return arguments_; }
  Outcome refuses(std::size_t count) const override;
  Outcome refuses(std::span<const ArgumentShape> shapes) const override;
  // Sizes of a group for a work that has none. False: the driver is to choose.
  bool choose_sizes(const Work& work, std::size_t local[3]) const;

  KernelTime time;

 private:
  void learn_sizes(cl_kernel kernel);

  Device& device_;
  std::shared_ptr<Program> program_;
  std::string name_;
  std::size_t arguments_;
  std::size_t required_[3] = {};  // sizes of a group; 0: any
  GroupLimits limits_;
  bool chooses_sizes_ = false;
  mutable os::Mutex mutex_;
  mutable std::vector<cl_kernel> idle_ AMASIA_GUARDED_BY(mutex_);
};

class Buffer final : public DeviceBuffer {
 public:
  static std::unique_ptr<Buffer> make(Device& device, Bytes size, void* host, Outcome* outcome);
  Buffer(Device& device, cl_mem handle, Bytes size, bool in_place)
      : device_(device),
        handle_(handle),
        size_(size),
        in_place_(in_place),
        address_(in_place ? nullptr : device.address_of(handle)) {}
  ~Buffer() override {
    if (in_place_) {
      device_.cl.ReleaseMemObject(handle_);
    } else {
      device_.give_memory(handle_, size_);
    }
  }
  cl_mem handle() const { return handle_; }
  Bytes size() const { return size_; }
  // It is the host's memory: there is nothing to copy.
  bool in_place() const { return in_place_; }
  // Memory of the device's own that the host can use; nullptr: it cannot.
  std::byte* address() const { return address_; }

 private:
  Device& device_;
  cl_mem handle_;
  Bytes size_;
  bool in_place_;
  std::byte* address_;
};

// Enqueues the works and arranges that their completions are told of their ends.
void fly(Device& device, std::span<const Submission> all);

// How an error of the driver is told to the client.
Outcome wrong_argument(cl_int error, const Kernel& kernel, cl_uint index, std::size_t size);
Outcome failed_launch(cl_int error, const Kernel& kernel);

}  // namespace amasia::devices::opencl
