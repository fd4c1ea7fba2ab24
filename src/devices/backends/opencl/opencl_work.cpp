// SPDX-License-Identifier: Apache-2.0
// From a Work to commands in a queue, and from their end to the Completion.
#include <fmt/format.h>

#include <utility>

#include "devices/backends/opencl/opencl_device.hpp"

namespace amasia::devices::opencl {
namespace {

// A part of a buffer that a sub-buffer cannot stand for, since it begins at an address that is not
// aligned as the device wants it: the kernel gets a copy of it, which is copied back.
struct Aside {
  const Buffer* buffer = nullptr;
  Bytes offset = 0, size = 0;
  cl_mem copy = nullptr;
};

// A work between submit() and its end. Deletes itself when it tells of it.
class Flight {
 public:
  Flight(Device& device, Completion& completion)
      : device_(device),
        cl_(device.cl),
        completion_(completion),
        queue_(device.least_busy_queue()) {}
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Each enqueues; false: the work failed and nothing more is to be enqueued.
  bool copy_to_device(std::span<const Copy> copies);
  bool launch(const Work& work);
  bool copy_to_host(std::span<const Copy> copies);
  // Hands the work to the device. The flight may be over when this returns.
  static void depart(std::unique_ptr<Flight> flight);

 private:
  bool fail(Failure failure, std::string message);
  bool set_arguments(cl_kernel kernel, const Work& work);
  bool set_buffer(cl_kernel kernel, cl_uint index, const KernelArgument& argument);
  bool note_argument(cl_int error, cl_uint index, std::size_t size);
  cl_mem part_of(const Buffer& buffer, Bytes offset, Bytes size, cl_int* error);
  bool copy_aside_back();
  void keep_last(cl_event event);
  Nanos time_of(cl_event event, cl_profiling_info what) const;
  void arrive(cl_int status);
  static void CL_CALLBACK on_end(cl_event event, cl_int status, void* flight);

  Device& device_;
  const Library& cl_;
  Completion& completion_;
  Queue& queue_;
  Outcome outcome_;
  const Kernel* kernel_ = nullptr;
  std::vector<Aside> asides_;
  std::vector<cl_mem> parts_;  // sub-buffers, until the launch has taken them
  // Events that the times are read from; `last_` is of the last command, whatever it was.
  cl_event first_copy_ = nullptr, run_ = nullptr, last_ = nullptr;
  bool copies_back_ = false;
};

Flight::~Flight() {
  if (last_ == first_copy_ || last_ == run_) last_ = nullptr;  // one reference, two names
  for (const cl_event event : {first_copy_, run_, last_}) {
    if (event != nullptr) cl_.ReleaseEvent(event);
  }
  for (const cl_mem part : parts_) cl_.ReleaseMemObject(part);
  for (const Aside& aside : asides_) cl_.ReleaseMemObject(aside.copy);
}

bool Flight::fail(Failure failure, std::string message) {
  outcome_.failure = failure;
  outcome_.message = std::move(message);
  return false;
}

void Flight::keep_last(cl_event event) {
  if (last_ != nullptr && last_ != first_copy_ && last_ != run_) cl_.ReleaseEvent(last_);
  last_ = event;
}

bool Flight::copy_to_device(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    const auto& buffer = static_cast<const Buffer&>(*copy.buffer);
    if (buffer.in_place() || copy.size == 0) continue;
    cl_event event = nullptr;
    const cl_int error =
        cl_.EnqueueWriteBuffer(queue_.handle, buffer.handle(), CL_FALSE, copy.offset, copy.size,
                               copy.host, 0, nullptr, &event);
    if (error != CL_SUCCESS) {
      return fail(error == CL_MEM_OBJECT_ALLOCATION_FAILURE ? Failure::kDeviceMemory
                                                            : Failure::kDevice,
                  fmt::format("cannot copy {} bytes to {}: {}", copy.size,
                              device_.description.name, name_of_error(error)));
    }
    keep_last(event);
    if (first_copy_ == nullptr) first_copy_ = event;
  }
  return true;
}

bool Flight::copy_to_host(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    const auto& buffer = static_cast<const Buffer&>(*copy.buffer);
    if (buffer.in_place() || copy.size == 0) continue;
    cl_event event = nullptr;
    const cl_int error =
        cl_.EnqueueReadBuffer(queue_.handle, buffer.handle(), CL_FALSE, copy.offset, copy.size,
                              copy.host, 0, nullptr, &event);
    if (error != CL_SUCCESS) {
      return fail(Failure::kDevice,
                  fmt::format("cannot copy {} bytes from {}: {}", copy.size,
                              device_.description.name, name_of_error(error)));
    }
    keep_last(event);
    copies_back_ = true;
  }
  return true;
}

bool Flight::note_argument(cl_int error, cl_uint index, std::size_t size) {
  if (error == CL_SUCCESS) return true;
  const bool users = error == CL_INVALID_ARG_SIZE || error == CL_INVALID_ARG_VALUE ||
                     error == CL_INVALID_ARG_INDEX || error == CL_INVALID_MEM_OBJECT;
  return fail(users ? Failure::kArguments : Failure::kDevice,
              fmt::format("argument {} of the kernel '{}' does not take {} bytes so: {}", index,
                          kernel_->name(), size, name_of_error(error)));
}

// A memory object for part of a buffer: a sub-buffer, or a copy where that is not aligned.
cl_mem Flight::part_of(const Buffer& buffer, Bytes offset, Bytes size, cl_int* error) {
  if (offset % device_.alignment == 0) {
    const cl_buffer_region region{offset, size};
    const cl_mem part = cl_.CreateSubBuffer(buffer.handle(), 0, CL_BUFFER_CREATE_TYPE_REGION,
                                            &region, error);
    if (part != nullptr) parts_.push_back(part);
    return part;
  }
  const cl_mem copy =
      cl_.CreateBuffer(device_.context, CL_MEM_READ_WRITE, size, nullptr, error);
  if (copy == nullptr) return nullptr;
  asides_.push_back({&buffer, offset, size, copy});
  cl_event event = nullptr;
  *error = cl_.EnqueueCopyBuffer(queue_.handle, buffer.handle(), copy, offset, 0, size, 0, nullptr,
                                 &event);
  if (*error != CL_SUCCESS) return nullptr;
  keep_last(event);
  return copy;
}

bool Flight::set_buffer(cl_kernel kernel, cl_uint index, const KernelArgument& argument) {
  if (argument.buffer == nullptr) {
    return note_argument(cl_.SetKernelArg(kernel, index, sizeof(cl_mem), nullptr), index, 0);
  }
  const auto& buffer = static_cast<const Buffer&>(*argument.buffer);
  cl_mem memory = buffer.handle();
  if (argument.offset != 0) {
    const Bytes rest = buffer.size() - argument.offset;
    cl_int error = CL_SUCCESS;
    memory = part_of(buffer, argument.offset, argument.size != 0 ? argument.size : rest, &error);
    if (memory == nullptr || error != CL_SUCCESS) {
      return fail(error == CL_MEM_OBJECT_ALLOCATION_FAILURE ? Failure::kDeviceMemory
                                                            : Failure::kArguments,
                  fmt::format("argument {} of the kernel '{}' cannot begin at byte {} of its "
                              "buffer: {}",
                              index, kernel_->name(), argument.offset, name_of_error(error)));
    }
  }
  return note_argument(cl_.SetKernelArg(kernel, index, sizeof memory, &memory), index,
                       sizeof memory);
}

bool Flight::set_arguments(cl_kernel kernel, const Work& work) {
  if (work.arguments.size() != kernel_->arguments()) {
    return fail(Failure::kArguments, fmt::format("the kernel '{}' takes {} arguments, not {}",
                                                 kernel_->name(), kernel_->arguments(),
                                                 work.arguments.size()));
  }
  for (cl_uint index = 0; index < work.arguments.size(); ++index) {
    const KernelArgument& argument = work.arguments[index];
    switch (argument.kind) {
      case KernelArgument::Kind::kValue:
        if (!note_argument(cl_.SetKernelArg(kernel, index, argument.size, argument.value), index,
                           argument.size)) {
          return false;
        }
        break;
      case KernelArgument::Kind::kLocal:
        if (!note_argument(cl_.SetKernelArg(kernel, index, argument.size, nullptr), index,
                           argument.size)) {
          return false;
        }
        break;
      case KernelArgument::Kind::kBuffer:
        if (!set_buffer(kernel, index, argument)) return false;
        break;
    }
  }
  return true;
}

bool Flight::launch(const Work& work) {
  if (work.kernel == nullptr) return true;
  auto& loaded = static_cast<Kernel&>(*work.kernel);
  kernel_ = &loaded;
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = loaded.take(&error);
  if (kernel == nullptr) {
    return fail(Failure::kDevice, fmt::format("cannot make the kernel '{}': {}", loaded.name(),
                                              name_of_error(error)));
  }
  bool launched = set_arguments(kernel, work);
  if (launched) {
    std::size_t global[3], local[3], offset[3];
    for (int i = 0; i < 3; ++i) {
      global[i] = work.global[i];
      local[i] = work.local[i];
      offset[i] = work.offset[i];
    }
    error = cl_.EnqueueNDRangeKernel(queue_.handle, kernel, work.dimensions, offset, global,
                                     work.local[0] == 0 ? nullptr : local, 0, nullptr, &run_);
    if (error == CL_SUCCESS) {
      keep_last(run_);
    } else {
      outcome_ = failed_launch(error, loaded);
      launched = false;
    }
  }
  // The launch has taken the arguments' values: the object can be used for the next one.
  loaded.give_back(kernel);
  return launched && copy_aside_back();
}

bool Flight::copy_aside_back() {
  for (const Aside& aside : asides_) {
    cl_event event = nullptr;
    const cl_int error =
        cl_.EnqueueCopyBuffer(queue_.handle, aside.copy, aside.buffer->handle(), 0, aside.offset,
                              aside.size, 0, nullptr, &event);
    if (error != CL_SUCCESS) {
      return fail(Failure::kDevice, fmt::format("cannot copy {} bytes within {}: {}", aside.size,
                                                device_.description.name, name_of_error(error)));
    }
    keep_last(event);
  }
  return true;
}

// What was enqueued before a failure still uses the host's memory: the end is told after it too.
void Flight::depart(std::unique_ptr<Flight> flight) {
  Flight& self = *flight;
  if (self.last_ == nullptr) {
    flight.release()->arrive(CL_COMPLETE);
    return;
  }
  const cl_event last = self.last_;
  const Library& cl = self.cl_;
  const cl_int flushed = cl.Flush(self.queue_.handle);
  // A driver that runs commands in the thread that flushes them has ended already, and a call-back
  // would only cost.
  cl_int status = CL_QUEUED;
  cl.GetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  if (flushed != CL_SUCCESS) status = flushed;
  if (status <= CL_COMPLETE) {
    flight.release()->arrive(status);
    return;
  }
  Flight* const in_the_air = flight.release();
  // The call-back may come, and drop the flight's own reference, while the driver is in this call.
  cl.RetainEvent(last);
  if (cl.SetEventCallback(last, CL_COMPLETE, &Flight::on_end, in_the_air) != CL_SUCCESS) {
    cl.WaitForEvents(1, &last);
    in_the_air->arrive(CL_COMPLETE);
  }
  cl.ReleaseEvent(last);
}

void CL_CALLBACK Flight::on_end(cl_event, cl_int status, void* flight) {
  static_cast<Flight*>(flight)->arrive(status);
}

Nanos Flight::time_of(cl_event event, cl_profiling_info what) const {
  cl_ulong time = 0;
  if (event == nullptr ||
      cl_.GetEventProfilingInfo(event, what, sizeof time, &time, nullptr) != CL_SUCCESS) {
    return 0;
  }
  return static_cast<Nanos>(time);
}

void Flight::arrive(cl_int status) {
  std::unique_ptr<Flight> self(this);
  if (status < 0 && outcome_.failure == Failure::kNone) {
    fail(Failure::kDevice,
         fmt::format("{}{} failed on {}: {}", kernel_ != nullptr ? "the kernel " : "a copy",
                     kernel_ != nullptr ? "'" + kernel_->name() + "'" : "",
                     device_.description.name, name_of_error(status)));
  }
  const Nanos ended = time_of(last_, CL_PROFILING_COMMAND_END);
  if (ended != 0) {
    const os::MutexLock lock(device_.clock_mutex);
    DeviceClock& clock = device_.clock;
    clock.note(ended, os::monotonic_now());
    outcome_.copy_began = clock.to_host(time_of(first_copy_, CL_PROFILING_COMMAND_START));
    outcome_.run_began = clock.to_host(time_of(run_, CL_PROFILING_COMMAND_START));
    outcome_.run_ended = clock.to_host(time_of(run_, CL_PROFILING_COMMAND_END));
    if (copies_back_) outcome_.copy_ended = clock.to_host(ended);
  }
  queue_.works.fetch_sub(1, std::memory_order_relaxed);
  // Nothing of the device may be touched once the client knows: it may end the back end.
  Completion& completion = completion_;
  Outcome outcome = std::move(outcome_);
  self.reset();
  completion.finished(std::move(outcome));
}

}  // namespace

Outcome failed_launch(cl_int error, const Kernel& kernel) {
  Failure failure = Failure::kDevice;
  switch (error) {
    case CL_INVALID_WORK_DIMENSION:
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_GLOBAL_OFFSET:
    case CL_INVALID_GLOBAL_WORK_SIZE:
      failure = Failure::kWorkSize;
      break;
    case CL_INVALID_KERNEL_ARGS:
      failure = Failure::kArguments;
      break;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      failure = Failure::kDeviceMemory;
      break;
    default:
      break;
  }
  return failed(failure, fmt::format("the kernel '{}' cannot be launched: {}", kernel.name(),
                                     name_of_error(error)));
}

void Device::submit(const Work& work, Completion& completion) {
  if (!runs_in_caller_) return fly(*this, work, completion);
  {
    const os::MutexLock lock(line_mutex_);
    if (busy_) {
      waiting_.push_back({work, &completion});
      return;
    }
    busy_ = true;
  }
  fly(*this, work, completion);
  work_off_line();
}

// The caller is the one thread that is busy here. A back end lives as long as a submit() of it has
// not returned.
void Device::work_off_line() {
  for (;;) {
    std::vector<Waiting> taken;
    {
      const os::MutexLock lock(line_mutex_);
      if (waiting_.empty()) {
        busy_ = false;
        return;
      }
      taken.swap(waiting_);
    }
    for (const Waiting& one : taken) fly(*this, one.work, *one.completion);
  }
}

void fly(Device& device, const Work& work, Completion& completion) {
  auto flight = std::make_unique<Flight>(device, completion);
  static_cast<void>(flight->copy_to_device(work.to_device) && flight->launch(work) &&
                    flight->copy_to_host(work.to_host));
  Flight::depart(std::move(flight));
}

}  // namespace amasia::devices::opencl
