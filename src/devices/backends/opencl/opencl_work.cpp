// SPDX-License-Identifier: Apache-2.0
// From a Work to commands in a queue, and from their end to the Completion.
//
// Works that come together and are brief share a queue and one call-back: they are a chain, whose
// ends are told when its last work has ended. Queues run their commands in order.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "devices/backends/opencl/opencl_device.hpp"

namespace amasia::devices::opencl {
namespace {

// How many works may share a call-back, and how long all together are expected to take: that much
// later than it could be the end of the first is told.
constexpr std::size_t kChainMost = 16;
constexpr double kChainTime = 50 * base::kMicrosecond;
// Works that may be in one with others. A guess that is wrong delays a few ends, once.
constexpr double kBrief = 10 * base::kMicrosecond;

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
  Flight(Device& device, Completion& completion, Queue& queue)
      : device_(device), cl_(device.cl), completion_(completion), queue_(queue) {
    queue.works.fetch_add(1, std::memory_order_relaxed);
  }
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Each enqueues; false: the work failed and nothing more is to be enqueued.
  bool copy_to_device(std::span<const Copy> copies);
  bool launch(const Work& work);
  bool copy_to_host(std::span<const Copy> copies);
  // To come down with it: what was enqueued before it in the same queue.
  void follow(std::unique_ptr<Flight> before) { before_ = std::move(before); }
  Queue& queue() { return queue_; }
  // Hands the works to the device. The flights may be over when this returns.
  static void depart(std::unique_ptr<Flight> last);

 private:
  using Chain = std::array<std::unique_ptr<Flight>, kChainMost>;
  bool fail(Failure failure, std::string message);
  bool set_arguments(cl_kernel kernel, const Work& work);
  bool set_buffer(cl_kernel kernel, cl_uint index, const KernelArgument& argument);
  bool note_argument(cl_int error, cl_uint index, std::size_t size);
  cl_mem part_of(const Buffer& buffer, Bytes offset, Bytes size, cl_int* error);
  bool copy_aside_back();
  void keep_last(cl_event event);
  cl_event last_of_chain() const;
  Nanos time_of(cl_event event, cl_profiling_info what) const;
  void note_end(cl_int status);
  void arrive(cl_int status);
  static void note_times(std::span<const std::unique_ptr<Flight>> chain);
  static void CL_CALLBACK on_end(cl_event event, cl_int status, void* flight);

  Device& device_;
  const Library& cl_;
  Completion& completion_;
  Queue& queue_;
  Outcome outcome_;
  std::unique_ptr<Flight> before_;
  Kernel* kernel_ = nullptr;
  std::uint64_t items_ = 1;
  std::vector<Aside> asides_;
  std::vector<cl_mem> parts_;  // sub-buffers, until the launch has taken them
  // Events that the times are read from; `last_` is of the last command, whatever it was.
  cl_event first_copy_ = nullptr, run_ = nullptr, last_ = nullptr;
  bool copies_back_ = false;
  Nanos ended_ = 0;  // by the device's clock
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
  outcome_ = wrong_argument(error, *kernel_, index, size);
  return false;
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
  outcome_ = kernel_->refuses(work.arguments.size());
  if (outcome_.failure != Failure::kNone) return false;
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
    items_ = work.global[0] * work.global[1] * work.global[2];
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

// Of the command that was enqueued last; nullptr: there is none.
cl_event Flight::last_of_chain() const {
  for (const Flight* flight = this; flight != nullptr; flight = flight->before_.get()) {
    if (flight->last_ != nullptr) return flight->last_;
  }
  return nullptr;
}

// What was enqueued before a failure still uses the host's memory: the end is told after it too.
void Flight::depart(std::unique_ptr<Flight> flight) {
  Flight& self = *flight;
  const cl_event last = self.last_of_chain();
  if (last == nullptr) {
    flight.release()->arrive(CL_COMPLETE);
    return;
  }
  const Library& cl = self.cl_;
  const cl_int flushed = cl.Flush(self.queue_.handle);
  // A driver that runs commands in the thread that flushes them has ended already, and a call-back
  // would only cost.
  cl_int status = CL_QUEUED;
  cl.GetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  if (flushed != CL_SUCCESS) {
    for (Flight* one = &self; one != nullptr; one = one->before_.get()) one->note_end(flushed);
    status = CL_COMPLETE;
  }
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

void Flight::note_end(cl_int status) {
  if (status >= 0 || outcome_.failure != Failure::kNone) return;
  fail(Failure::kDevice,
       fmt::format("{}{} failed on {}: {}", kernel_ != nullptr ? "the kernel " : "a copy",
                   kernel_ != nullptr ? "'" + kernel_->name() + "'" : "",
                   device_.description.name, name_of_error(status)));
}

void Flight::note_times(std::span<const std::unique_ptr<Flight>> chain) {
  for (const auto& one : chain) {
    Outcome& outcome = one->outcome_;
    outcome.copy_began = one->time_of(one->first_copy_, CL_PROFILING_COMMAND_START);
    outcome.run_began = one->time_of(one->run_, CL_PROFILING_COMMAND_START);
    outcome.run_ended = one->time_of(one->run_, CL_PROFILING_COMMAND_END);
    one->ended_ = one->last_ == one->run_ ? outcome.run_ended
                                          : one->time_of(one->last_, CL_PROFILING_COMMAND_END);
    if (one->copies_back_) outcome.copy_ended = one->ended_;
    if (outcome.run_ended > outcome.run_began && outcome.run_began != 0) {
      one->kernel_->learn(one->items_, outcome.run_ended - outcome.run_began);
    }
  }
  const os::MutexLock lock(chain.front()->device_.clock_mutex);
  DeviceClock& clock = chain.front()->device_.clock;
  const Nanos now = os::monotonic_now();
  // The first one ended last: it is nearest to now.
  if (const Nanos ended = chain.front()->ended_; ended != 0) clock.note(ended, now);
  for (const auto& one : chain) {
    for (Nanos* const time : {&one->outcome_.copy_began, &one->outcome_.run_began,
                              &one->outcome_.run_ended, &one->outcome_.copy_ended}) {
      *time = clock.to_host(*time);
    }
  }
}

// `status` of the last command of the chain.
void Flight::arrive(cl_int status) {
  Chain chain;
  std::size_t count = 0;
  for (std::unique_ptr<Flight> one(this); one != nullptr; ++count) {
    std::unique_ptr<Flight> before = std::move(one->before_);
    chain[count] = std::move(one);
    one = std::move(before);
  }
  const auto flights = std::span(chain).first(count);
  for (const auto& one : flights) {
    cl_int own = status;
    if (count > 1 && one->last_ != nullptr) {
      cl_.GetEventInfo(one->last_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof own, &own, nullptr);
    }
    one->note_end(own);
  }
  note_times(flights);
  queue_.works.fetch_sub(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
  // Nothing of the device may be touched once the client knows: it may end the back end.
  std::array<std::pair<Completion*, Outcome>, kChainMost> told;
  for (std::size_t i = 0; i < count; ++i) {
    told[i] = {&chain[i]->completion_, std::move(chain[i]->outcome_)};
    chain[i].reset();
  }
  // In the order in which they ended.
  for (std::size_t i = count - 1; i > 0; --i) {
    told[i].first->finished_with_others(std::move(told[i].second));
  }
  told[0].first->finished(std::move(told[0].second));
}

}  // namespace

Outcome wrong_argument(cl_int error, const Kernel& kernel, cl_uint index, std::size_t size) {
  const bool users = error == CL_INVALID_ARG_SIZE || error == CL_INVALID_ARG_VALUE ||
                     error == CL_INVALID_ARG_INDEX || error == CL_INVALID_MEM_OBJECT;
  return failed(users ? Failure::kArguments : Failure::kDevice,
                fmt::format("argument {} of the kernel '{}' does not take {} bytes so: {}", index,
                            kernel.name(), size, name_of_error(error)));
}

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

namespace {

bool moves_bytes(std::span<const Copy> copies) {
  return std::any_of(copies.begin(), copies.end(), [](const Copy& copy) {
    return copy.size != 0 && !static_cast<const Buffer&>(*copy.buffer).in_place();
  });
}

// Copies of memory that is the host's own: no command is made of them.
bool is_done_already(const Submission& one) {
  return one.work.kernel == nullptr && !moves_bytes(one.work.to_device) &&
         !moves_bytes(one.work.to_host);
}

}  // namespace

void Device::submit(std::span<const Submission> all) {
  // What the driver has nothing to do with need not wait for a kernel that runs in another thread.
  if (!runs_in_caller_ || std::all_of(all.begin(), all.end(), is_done_already)) {
    return fly(*this, all);
  }
  {
    const os::MutexLock lock(line_mutex_);
    if (busy_) {
      waiting_.insert(waiting_.end(), all.begin(), all.end());
      return;
    }
    busy_ = true;
  }
  fly(*this, all);
  work_off_line();
}

// The caller is the one thread that is busy here. A back end lives as long as a submit() of it has
// not returned.
void Device::work_off_line() {
  for (;;) {
    std::vector<Submission> taken;
    {
      const os::MutexLock lock(line_mutex_);
      if (waiting_.empty()) {
        busy_ = false;
        return;
      }
      taken.swap(waiting_);
    }
    fly(*this, taken);
  }
}

namespace {

// How long a work that may be in one with others is expected to take; negative: it may not be.
double brief_time(const Work& work) {
  if (work.kernel == nullptr || moves_bytes(work.to_device) || moves_bytes(work.to_host)) return -1;
  const double time = static_cast<const Kernel&>(*work.kernel)
                          .expected(work.global[0] * work.global[1] * work.global[2]);
  return time <= kBrief ? time : -1;
}

}  // namespace

void fly(Device& device, std::span<const Submission> all) {
  std::unique_ptr<Flight> chain;
  std::size_t length = 0;
  double expected = 0;
  for (const Submission& one : all) {
    const double time = brief_time(one.work);
    if (chain != nullptr &&
        (time < 0 || length == kChainMost || expected + time > kChainTime)) {
      Flight::depart(std::move(chain));
    }
    if (chain == nullptr) {
      length = 0;
      expected = 0;
    }
    Queue& queue = chain != nullptr ? chain->queue() : device.least_busy_queue();
    auto flight = std::make_unique<Flight>(device, *one.completion, queue);
    static_cast<void>(flight->copy_to_device(one.work.to_device) && flight->launch(one.work) &&
                      flight->copy_to_host(one.work.to_host));
    flight->follow(std::move(chain));
    ++length;
    expected += time;
    if (time < 0) {
      Flight::depart(std::move(flight));
    } else {
      chain = std::move(flight);
    }
  }
  if (chain != nullptr) Flight::depart(std::move(chain));
}

}  // namespace amasia::devices::opencl
