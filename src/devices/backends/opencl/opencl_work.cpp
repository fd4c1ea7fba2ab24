// SPDX-License-Identifier: Apache-2.0
// From Works to commands in a queue, and from their end to the Completions.
//
// Brief works fly together, with one call-back and two events for all. A work that is not measured
// has one event, at its end, in a queue that records no times.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "devices/backends/opencl/direct_copies.hpp"
#include "devices/backends/opencl/opencl_device.hpp"

namespace amasia::devices::opencl {
namespace {

const Buffer& buffer_of(const Copy& copy) { return static_cast<const Buffer&>(*copy.buffer); }
// Not where it is of memory that is the host's own.
bool is_needed(const Copy& copy) { return copy.size != 0 && !buffer_of(copy).in_place(); }
bool is_direct(const Copy& copy) {
  return copy.size <= DirectCopies::kMost && buffer_of(copy).address() != nullptr;
}
std::byte* address_of(const Copy& copy) { return buffer_of(copy).address() + copy.offset; }

std::size_t count_commands(std::span<const Copy> copies) {
  return static_cast<std::size_t>(std::count_if(copies.begin(), copies.end(), [](const Copy& copy) {
    return is_needed(copy) && !is_direct(copy);
  }));
}
bool moves_bytes(std::span<const Copy> copies) {
  return std::any_of(copies.begin(), copies.end(), is_needed);
}

// A part of a buffer that a sub-buffer cannot stand for, since it begins at an address that is not
// aligned as the device wants it: the kernel gets a copy of it, which is copied back.
struct Aside {
  const Buffer* buffer = nullptr;
  Bytes offset = 0, size = 0;
  cl_mem copy = nullptr;
};

// One work, or several that run one kernel for as many items each and move no bytes. Deletes itself
// when it tells of the end.
class Flight final : public Watched, public os::InBlocks {
 public:
  Flight(Device& device, Queue& queue, std::size_t works)
      : device_(device), queue_(queue), works_(works) {
    seen_.sent = os::monotonic_now();
    passengers_.reserve(works);
    queue.works.fetch_add(static_cast<std::uint32_t>(works), std::memory_order_relaxed);
  }
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Enqueues its commands; where that fails, the rest of them is not.
  void board(const Submission& one);
  // Hands the works to the device. The flight may be over when this returns.
  static void depart(std::unique_ptr<Flight> flight, CallerWaits caller_waits);

  bool has_ended() noexcept override;
  void land() noexcept override { arrive(status_); }
  bool will_tell(const Completion& completion) const noexcept override {
    return devices::will_tell(passengers_, completion);
  }

 private:
  // Each enqueues; false: the work failed and nothing more is to be enqueued.
  bool copy_to_device(std::span<const Copy> copies);
  bool launch(const Work& work);
  bool copy_to_host(std::span<const Copy> copies);
  bool copy_aside_back();
  bool fail(Failure failure, std::string message);
  bool fail(Outcome&& outcome);
  bool set_arguments(cl_kernel kernel, const Work& work);
  bool set_buffer(cl_kernel kernel, cl_uint index, const KernelArgument& argument);
  bool note_argument(cl_int error, cl_uint index, std::size_t size);
  cl_mem part_of(const Buffer& buffer, Bytes offset, Bytes size, cl_int* error);
  cl_event* place_for_event();
  void note_enqueued();
  Nanos time_of(cl_event event, cl_profiling_info what) const;
  void note_end(cl_int status);
  void arrive(cl_int status);
  // Of the first work, and how much later that of each following one is.
  Outcome measure(Nanos* interval);
  static void CL_CALLBACK on_end(cl_event event, cl_int status, void* flight);

  Device& device_;
  const Library& cl_ = device_.cl;
  Queue& queue_;
  const std::size_t works_;                // that fly together
  os::BlockVector<Passenger> passengers_;  // those on board
  Kernel* kernel_ = nullptr;
  std::uint64_t items_ = 1;
  std::vector<Aside> asides_;
  std::size_t asides_done_ = 0;  // copied back
  std::vector<cl_mem> parts_;    // sub-buffers, until the launch has taken them
  // Events that the times are read from: `run_` is the first work's kernel, `last_` the last
  // command with an event, whatever it was.
  cl_event first_copy_ = nullptr, run_ = nullptr, last_ = nullptr;
  cl_event latest_ = nullptr;  // of the command that is being enqueued
  bool has_later_ = false;     // commands without an event were enqueued after `last_`
  std::size_t commands_left_ = 0;  // of a work that is not measured
  DirectCopies direct_;
  SeenTimes seen_;
  cl_int status_ = CL_QUEUED;  // of the last command, as it was looked at
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
  return fail(failed(failure, std::move(message)));
}

bool Flight::fail(Outcome&& outcome) {
  passengers_.back().failed = std::make_unique<Outcome>(std::move(outcome));
  return false;
}

// Where the next command's event goes: the first work's and the last one's have some, or, where no
// times are recorded, the last command of all.
cl_event* Flight::place_for_event() {
  latest_ = nullptr;
  const bool is_between =
      passengers_.size() < works_ && (passengers_.size() > 1 || !queue_.profiles);
  const bool is_last = commands_left_ <= 1;
  if (commands_left_ > 0) --commands_left_;
  return is_between || (!queue_.profiles && !is_last) ? nullptr : &latest_;
}

void Flight::note_enqueued() {
  has_later_ = latest_ == nullptr;
  if (has_later_) return;
  if (last_ != nullptr && last_ != first_copy_ && last_ != run_) cl_.ReleaseEvent(last_);
  last_ = latest_;
}

void Flight::board(const Submission& one) {
  passengers_.push_back({one.completion, nullptr});
  commands_left_ = count_commands(one.work.to_device) + count_commands(one.work.to_host) +
                   (one.work.kernel != nullptr ? 1 : 0);
  static_cast<void>(copy_to_device(one.work.to_device) && launch(one.work) &&
                    copy_to_host(one.work.to_host));
}

bool Flight::copy_to_device(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    if (!is_needed(copy)) continue;
    if (is_direct(copy)) {
      direct_.to_device(address_of(copy), copy);
      continue;
    }
    const cl_int error =
        cl_.EnqueueWriteBuffer(queue_.handle, buffer_of(copy).handle(), CL_FALSE, copy.offset,
                               copy.size, copy.host, 0, nullptr, place_for_event());
    if (error != CL_SUCCESS) {
      return fail(error == CL_MEM_OBJECT_ALLOCATION_FAILURE ? Failure::kDeviceMemory
                                                            : Failure::kDevice,
                  fmt::format("cannot copy {} bytes to {}: {}", copy.size,
                              device_.description.name, name_of_error(error)));
    }
    note_enqueued();
    if (first_copy_ == nullptr) first_copy_ = last_;
    seen_.copied_in = true;
  }
  return true;
}

bool Flight::copy_to_host(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    if (!is_needed(copy)) continue;
    if (is_direct(copy)) {
      direct_.to_host(address_of(copy), copy);
      continue;
    }
    const cl_int error =
        cl_.EnqueueReadBuffer(queue_.handle, buffer_of(copy).handle(), CL_FALSE, copy.offset,
                              copy.size, copy.host, 0, nullptr, place_for_event());
    if (error != CL_SUCCESS) {
      return fail(Failure::kDevice,
                  fmt::format("cannot copy {} bytes from {}: {}", copy.size,
                              device_.description.name, name_of_error(error)));
    }
    note_enqueued();
    seen_.copied_out = true;
  }
  return true;
}

bool Flight::note_argument(cl_int error, cl_uint index, std::size_t size) {
  if (error == CL_SUCCESS) return true;
  return fail(wrong_argument(error, *kernel_, index, size));
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
  *error = cl_.EnqueueCopyBuffer(queue_.handle, buffer.handle(), copy, offset, 0, size, 0, nullptr,
                                 place_for_event());
  if (*error != CL_SUCCESS) return nullptr;
  note_enqueued();
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
  Outcome refused = kernel_->refuses(work.arguments.size());
  if (refused.failure != Failure::kNone) return fail(std::move(refused));
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
    items_ = items_of(work);
    bool begins_elsewhere = false;
    for (int i = 0; i < 3; ++i) {
      global[i] = work.global[i];
      local[i] = work.local[i];
      offset[i] = work.offset[i];
      begins_elsewhere |= offset[i] != 0;
    }
    const bool has_local = work.local[0] != 0 || loaded.choose_sizes(work, local);
    error = cl_.EnqueueNDRangeKernel(queue_.handle, kernel, work.dimensions,
                                     begins_elsewhere ? offset : nullptr, global,
                                     has_local ? local : nullptr, 0, nullptr,
                                     place_for_event());
    if (error == CL_SUCCESS) {
      note_enqueued();
      seen_.has_kernel = true;
      if (passengers_.size() == 1) run_ = last_;
    } else {
      launched = fail(failed_launch(error, loaded));
    }
  }
  // The launch has taken the arguments' values: the object can be used for the next one.
  loaded.give_back(kernel);
  return launched && copy_aside_back();
}

bool Flight::copy_aside_back() {
  for (; asides_done_ < asides_.size(); ++asides_done_) {
    const Aside& aside = asides_[asides_done_];
    const cl_int error =
        cl_.EnqueueCopyBuffer(queue_.handle, aside.copy, aside.buffer->handle(), 0, aside.offset,
                              aside.size, 0, nullptr, place_for_event());
    if (error != CL_SUCCESS) {
      return fail(Failure::kDevice, fmt::format("cannot copy {} bytes within {}: {}", aside.size,
                                                device_.description.name, name_of_error(error)));
    }
    note_enqueued();
  }
  return true;
}

// What was enqueued before a failure still uses the host's memory: the end is told after it too.
void Flight::depart(std::unique_ptr<Flight> flight, CallerWaits caller_waits) {
  Flight& self = *flight;
  const Library& cl = self.cl_;
  if (self.has_later_) {  // the last work failed before it had a command
    self.latest_ = nullptr;
    if (cl.EnqueueMarkerWithWaitList(self.queue_.handle, 0, nullptr, &self.latest_) == CL_SUCCESS) {
      self.note_enqueued();
    } else {
      cl.Finish(self.queue_.handle);
    }
  }
  if (self.last_ == nullptr) {
    flight.release()->arrive(CL_COMPLETE);
    return;
  }
  const cl_int flushed = cl.Flush(self.queue_.handle);
  if (flushed == CL_SUCCESS && self.device_.watch) {
    self.device_.watch->send(self.queue_, *flight.release(), caller_waits);
    return;
  }
  // A driver that runs commands in the thread that flushes them has ended already, and a call-back
  // would only cost.
  self.status_ = flushed;
  if (flushed != CL_SUCCESS || self.has_ended()) {
    flight.release()->land();
    return;
  }
  Flight* const in_the_air = flight.release();
  const cl_event last = in_the_air->last_;
  // The call-back may come, and drop the flight's own reference, while the driver is in this call.
  cl.RetainEvent(last);
  if (cl.SetEventCallback(last, CL_COMPLETE, &Flight::on_end, in_the_air) != CL_SUCCESS) {
    cl.WaitForEvents(1, &last);
    in_the_air->arrive(CL_COMPLETE);
  }
  cl.ReleaseEvent(last);
}

bool Flight::has_ended() noexcept {
  status_ = CL_QUEUED;
  const cl_int error = cl_.GetEventInfo(last_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status_,
                                        &status_, nullptr);
  if (error != CL_SUCCESS) status_ = error;
  if (status_ > CL_COMPLETE) return false;
  seen_.ended = os::monotonic_now();
  if (device_.watch) seen_.before_ended = std::exchange(queue_.last_end, seen_.ended);
  return true;
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

// Where the driver says that the last command failed, any of them may have: a kernel's fault ends
// its context, and PoCL lets nothing in the queue run after it.
void Flight::note_end(cl_int status) {
  if (status >= 0) return;
  fail_all(passengers_, fmt::format("{} failed on {}: {}",
                                    kernel_ != nullptr ? "the kernel '" + kernel_->name() + "'"
                                                       : std::string("a copy"),
                                    device_.description.name, name_of_error(status)));
}

Outcome Flight::measure(Nanos* interval) {
  *interval = 0;
  if (!queue_.profiles) {
    return estimate_row(seen_, kernel_ == nullptr ? -1 : kernel_->time.expected(items_),
                        passengers_.size(), interval);
  }
  Outcome first;
  first.copy_began = time_of(first_copy_, CL_PROFILING_COMMAND_START);
  first.run_began = time_of(run_, CL_PROFILING_COMMAND_START);
  first.run_ended = time_of(run_, CL_PROFILING_COMMAND_END);
  const Nanos ended =
      last_ == run_ ? first.run_ended : time_of(last_, CL_PROFILING_COMMAND_END);
  if (seen_.copied_out) first.copy_ended = ended;
  if (first.run_ended > first.run_began && first.run_began != 0) {
    kernel_->time.learn(items_, first.run_ended - first.run_began);
  }
  // Not known where the first one failed: then none of their times is.
  const auto others = static_cast<Nanos>(passengers_.size() - 1);
  const bool is_known = others > 0 && first.run_ended != 0 && ended > first.run_ended;
  *interval = is_known ? (ended - first.run_ended) / others : 0;
  const os::MutexLock lock(device_.clock_mutex);
  DeviceClock& clock = device_.clock;
  if (ended != 0) clock.note(ended, os::monotonic_now());
  for (Nanos* const time :
       {&first.copy_began, &first.run_began, &first.run_ended, &first.copy_ended}) {
    *time = clock.to_host(*time);
  }
  return first;
}

// `status` of the last command.
void Flight::arrive(cl_int status) {
  note_end(status);
  Nanos interval = 0;
  Outcome first = measure(&interval);
  direct_.finish(status >= 0 && passengers_.front().failed == nullptr, &first);
  queue_.works.fetch_sub(static_cast<std::uint32_t>(works_), std::memory_order_relaxed);
  os::BlockVector<Passenger> told = std::move(passengers_);
  // Nothing of the device may be touched once the client knows: it may end the back end.
  delete this;
  tell_ends(told, std::move(first), interval);
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

// Copies of memory that is the host's own: no command is made of them.
bool is_done_already(const Submission& one) {
  return one.work.kernel == nullptr && !moves_bytes(one.work.to_device) &&
         !moves_bytes(one.work.to_host);
}

}  // namespace

void Device::submit(std::span<const Submission> all) {
  Watch::forget_sent();
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

// As count_together() asks for it.
double brief_time(const Work& work) {
  if (work.kernel == nullptr || moves_bytes(work.to_device) || moves_bytes(work.to_host)) return -1;
  return static_cast<const Kernel&>(*work.kernel).time.expected(items_of(work));
}

// Asked once for those that fly together.
bool is_measured(const Work& work) {
  if (work.kernel == nullptr) return work.wants_times;
  return static_cast<Kernel&>(*work.kernel).time.is_due() || work.wants_times;
}

}  // namespace

void fly(Device& device, std::span<const Submission> all) {
  std::optional<Watch::Submitting> submitting;
  if (device.watch) submitting.emplace(*device.watch);
  while (!all.empty()) {
    const std::size_t count = count_together(all, &brief_time);
    auto flight = std::make_unique<Flight>(
        device, device.least_busy_queue(is_measured(all.front().work)), count);
    for (const Submission& one : all.first(count)) flight->board(one);
    Flight::depart(std::move(flight), all[count - 1].work.caller_waits);
    all = all.subspan(count);
  }
}

}  // namespace amasia::devices::opencl
