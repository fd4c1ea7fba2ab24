// SPDX-License-Identifier: Apache-2.0
// From Works to commands in a stream, and from their end to the Completions.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "devices/backends/cuda/cuda_device.hpp"

namespace amasia::devices::cuda {
namespace {

bool moves_bytes(std::span<const Copy> copies) {
  return std::any_of(copies.begin(), copies.end(), [](const Copy& copy) { return copy.size != 0; });
}

// As count_together() asks for it.
double brief_time(const Work& work) {
  if (work.kernel == nullptr || moves_bytes(work.to_device) || moves_bytes(work.to_host)) return -1;
  return static_cast<const Kernel&>(*work.kernel).time.expected(items_of(work));
}

// False: *outcome says which argument is wrong.
bool pack(const Kernel& kernel, std::span<const KernelArgument> arguments, Parameters* parameters,
          Outcome* outcome) {
  for (const KernelArgument& argument : arguments) {
    switch (argument.kind) {
      case KernelArgument::Kind::kValue:
        parameters->add_value(argument.value, argument.size);
        break;
      case KernelArgument::Kind::kBuffer:
        parameters->add_pointer(argument.buffer == nullptr
                                    ? 0
                                    : static_cast<Memory&>(*argument.buffer).address +
                                          argument.offset);
        break;
      case KernelArgument::Kind::kLocal:
        parameters->add_local(argument.size);
        break;
    }
  }
  if (!kernel.sizes_known) return true;
  *outcome = wrong_parameters(kernel.name, kernel.sizes, parameters->sizes());
  return outcome->failure == Failure::kNone;
}

}  // namespace

Flight::Flight(Device& device) : device_(device), cuda_(device.cuda) {
  for (int mark = 0; mark < kMarks; ++mark) {
    cuda_.EventCreate(&marks_[mark], mark == kOver ? kEventDisableTiming : kEventDefault);
  }
}

Flight::~Flight() {
  for (const CUevent event : marks_) cuda_.EventDestroy(event);
}

void Flight::take_off(Stream& stream, std::size_t works) {
  stream_ = &stream;
  works_ = works;
  passengers_.reserve(works);
  seen_.sent = os::monotonic_now();
  stream.works.fetch_add(static_cast<std::uint32_t>(works), std::memory_order_relaxed);
}

bool Flight::fail(Outcome&& outcome) {
  auto& failed = passengers_.back().failed;
  if (failed == nullptr) failed = std::make_unique<Outcome>(std::move(outcome));
  return false;
}

bool Flight::note(CUresult error, const char* what) {
  if (error == kSuccess) return true;
  return fail(failed(Failure::kDevice, fmt::format("{} on {}: {}", what, device_.description.name,
                                                   cuda_.text_of(error))));
}

bool Flight::mark(Mark which) {
  if (!note(cuda_.EventRecord(marks_[which], stream_->handle), "cannot mark a time")) return false;
  marked_[which] = true;
  last_ = which;
  has_later_ = false;
  return true;
}

void Flight::board(const Submission& one) {
  passengers_.push_back({one.completion, nullptr});
  static_cast<void>(copy_in(one.work.to_device) && launch(one.work) && copy_out(one.work.to_host) &&
                    mark_end());
}

// The last work's end has a time, if the first one's has.
bool Flight::mark_end() {
  const bool has_time = is_measured_ && passengers_.size() == works_;
  return !has_time || !has_later_ || mark(kEnded);
}

void Flight::board(Completion& completion, CUdeviceptr to, const Device& from_device,
                   CUdeviceptr from, Bytes size) {
  passengers_.push_back({&completion, nullptr});
  const CUstream commands = stream_->handle;
  const CUresult error =
      &from_device == &device_
          ? cuda_.MemcpyDtoDAsync(to, from, size, commands)
          : cuda_.MemcpyPeerAsync(to, device_.context, from, from_device.context, size, commands);
  has_later_ |= note(error, "cannot copy between memories of GPUs");
}

bool Flight::copy_in(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    if (copy.size == 0) continue;
    // Where there is no more of it the user's own memory is used.
    const Pinned pinned = device_.pinned_->take(copy.size);
    const void* from = copy.host;
    if (pinned.bytes != nullptr) {
      pinned_.push_back(pinned);
      from = std::memcpy(pinned.bytes, copy.host, copy.size);
    }
    const CUdeviceptr to = static_cast<Memory&>(*copy.buffer).address + copy.offset;
    if (!note(cuda_.MemcpyHtoDAsync(to, from, copy.size, stream_->handle),
              "cannot copy to the device")) {
      return false;
    }
    seen_.copied_in = has_later_ = true;
  }
  return true;
}

bool Flight::copy_out(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    if (copy.size == 0) continue;
    const Pinned pinned = device_.pinned_->take(copy.size);
    void* to = copy.host;
    if (pinned.bytes != nullptr) {
      pinned_.push_back(pinned);
      landings_.push_back({copy.host, pinned.bytes, copy.size});
      to = pinned.bytes;
    }
    const CUdeviceptr from = static_cast<Memory&>(*copy.buffer).address + copy.offset;
    if (!note(cuda_.MemcpyDtoHAsync(to, from, copy.size, stream_->handle),
              "cannot copy from the device")) {
      return false;
    }
    seen_.copied_out = has_later_ = true;
  }
  return true;
}

bool Flight::prepare(const Work& work, Launch* launch, Outcome* wrong) const {
  const auto& kernel = static_cast<const Kernel&>(*work.kernel);
  const auto shape = shape_of(work, kernel.most_threads, device_.description.max_work_sizes);
  if (!shape) {
    *wrong = failed(Failure::kWorkSize, fmt::format("the kernel '{}' cannot be launched with {}",
                                                    kernel.name, shape.error().message));
    return false;
  }
  launch->shape = shape.value();
  return pack(kernel, work.arguments, &launch->parameters, wrong);
}

bool Flight::launch(const Work& work) {
  if (work.kernel == nullptr) return true;
  auto& kernel = static_cast<Kernel&>(*work.kernel);
  kernel_ = &kernel;
  items_ = items_of(work);
  Launch launch;
  Outcome wrong;
  if (!prepare(work, &launch, &wrong)) return fail(std::move(wrong));
  const bool is_first = passengers_.size() == 1;
  if (is_first) {
    is_measured_ = kernel.time.is_due() || work.wants_times;
    if (is_measured_ && !mark(kRunBegan)) return false;
  }
  const Shape& s = launch.shape;
  const CUresult error = cuda_.LaunchKernel(
      kernel.function, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
      static_cast<unsigned>(launch.parameters.shared_bytes()), stream_->handle,
      launch.parameters.pointers(), nullptr);
  if (error != kSuccess) {
    const bool size = error == kInvalidValue || error == kLaunchOutOfResources;
    return fail(failed(size ? Failure::kWorkSize : Failure::kDevice,
                       fmt::format("the kernel '{}' cannot be launched: {}", kernel.name,
                                   cuda_.text_of(error))));
  }
  has_later_ = seen_.has_kernel = true;
  return !is_first || !is_measured_ || mark(kRunEnded);
}

bool Flight::board_row(std::span<const Submission> all) {
  if (all.size() != Row::length_for(cuda_, all.size())) return false;
  const Work& first = all.front().work;
  auto& kernel = static_cast<Kernel&>(*first.kernel);
  std::array<Launch, Row::kLengths.front()> room;
  const auto launches = std::span(room).first(all.size());
  Outcome wrong;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!prepare(all[i].work, &launches[i], &wrong)) return false;
  }
  row_ = kernel.take_row(device_, launches);
  if (row_ == nullptr) return false;
  for (const Submission& one : all) passengers_.push_back({one.completion, nullptr});
  is_measured_ = kernel.time.is_due() || first.wants_times;
  const bool begun = (!is_measured_ || mark(kRunBegan)) && row_->begin(stream_->handle) == kSuccess;
  if (!begun) {
    passengers_.clear();
    row_.reset();
    return false;
  }
  kernel_ = &kernel;
  items_ = items_of(first);
  has_later_ = seen_.has_kernel = true;
  if (is_measured_) static_cast<void>(mark(kRunEnded));
  return true;
}

// What was enqueued before a failure still uses the host's memory: the end is told after it too.
void Flight::close() {
  if (has_later_ && !mark(kOver)) {
    end_ = cuda_.StreamSynchronize(stream_->handle);
  }
  if (std::none_of(marked_.begin(), marked_.end(), [](bool one) { return one; })) end_ = kSuccess;
}

bool Flight::has_ended() noexcept {
  if (end_ == kNotReady) {
    const InContext in(device_);
    end_ = cuda_.EventQuery(marks_[last_]);
    if (end_ == kNotReady) return false;
  }
  seen_.ended = os::monotonic_now();
  seen_.before_ended = std::exchange(stream_->last_end, seen_.ended);
  return true;
}

// The driver's times are differences; the end is when it was noticed.
Outcome Flight::measure(Nanos* interval) {
  *interval = 0;
  if (end_ != kSuccess || passengers_.front().failed != nullptr) return {};
  const auto works = static_cast<Nanos>(passengers_.size());
  Outcome first = estimate_row(seen_, kernel_ == nullptr ? -1 : kernel_->time.expected(items_),
                               passengers_.size(), interval);
  if (!marked_[kRunEnded] || last_ == kOver) return first;
  const auto before_end = [&](Mark which) {
    float ms = 0;
    if (which != last_) cuda_.EventElapsedTime(&ms, marks_[which], marks_[last_]);
    return seen_.ended - static_cast<Nanos>(static_cast<double>(ms) * 1e6);
  };
  first.run_began = before_end(kRunBegan);
  first.run_ended = before_end(kRunEnded);
  if (row_ != nullptr) {
    *interval = (first.run_ended - first.run_began) / works;
    first.run_ended = first.run_began + *interval;
  } else if (works > 1) {
    *interval = (seen_.ended - first.run_ended) / (works - 1);
  }
  first.copy_began = std::min(first.copy_began, first.run_began);
  kernel_->time.learn(items_, first.run_ended - first.run_began);
  return first;
}

void Flight::land() noexcept {
  if (end_ != kSuccess) {
    fail_all(passengers_, fmt::format("{} failed on {}: {}",
                                      kernel_ != nullptr ? "the kernel '" + kernel_->name + "'"
                                                         : std::string("a copy"),
                                      device_.description.name, cuda_.text_of(end_)));
  } else if (passengers_.front().failed == nullptr) {
    for (const auto& one : landings_) std::memcpy(one.host, one.pinned, one.size);
  }
  Nanos interval = 0;
  Outcome first = measure(&interval);
  os::BlockVector<Passenger> told = std::move(passengers_);
  // Nothing of the device may be touched once the client knows: it may end the back end.
  give_back();
  tell_ends(told, std::move(first), interval);
}

void Flight::give_back() {
  stream_->works.fetch_sub(static_cast<std::uint32_t>(works_), std::memory_order_relaxed);
  passengers_.clear();
  if (row_ != nullptr) kernel_->give_row(std::move(row_));
  kernel_ = nullptr;
  items_ = 1;
  marked_ = {};
  last_ = kOver;
  has_later_ = is_measured_ = false;
  seen_ = {};
  landings_.clear();
  end_ = kNotReady;
  if (!pinned_.empty()) {
    const InContext in(device_);
    device_.pinned_->give(pinned_);
    pinned_.clear();
  }
  const os::MutexLock lock(device_.mutex_);
  device_.idle_.push_back(this);
}

Stream& Device::stream_at(int number) {
  if (number != kAnyStream) return streams_[static_cast<std::size_t>(number)];
  Stream* best = streams_.data();
  for (Stream& stream : streams_) {
    if (stream.works.load(std::memory_order_relaxed) <
        best->works.load(std::memory_order_relaxed)) {
      best = &stream;
    }
  }
  return *best;
}

Flight& Device::take_flight() {
  const os::MutexLock lock(mutex_);
  if (idle_.empty()) return *flights_.emplace_back(std::make_unique<Flight>(*this));
  Flight* const flight = idle_.back();
  idle_.pop_back();
  return *flight;
}

void Device::submit(std::span<const Submission> all, int stream) {
  Watch::forget_sent();
  const InContext in(*this);
  while (!all.empty()) {
    std::size_t count = count_together(all, &brief_time);
    if (const std::size_t length = Row::length_for(cuda, count); length != 0) count = length;
    Flight& flight = take_flight();
    flight.take_off(stream_at(stream), count);
    if (!flight.board_row(all.first(count))) {
      for (const Submission& one : all.first(count)) flight.board(one);
    }
    send(flight, all[count - 1].work.caller_waits);
    all = all.subspan(count);
  }
}

void Device::copy_here(CUdeviceptr to, const Device& from_device, CUdeviceptr from, Bytes size,
                       Completion& completion, int stream) {
  const InContext in(*this);
  Flight& flight = take_flight();
  flight.take_off(stream_at(stream), 1);
  flight.board(completion, to, from_device, from, size);
  send(flight, CallerWaits::kNo);
}

void Device::send(Flight& flight, CallerWaits caller_waits) {
  flight.close();
  watch_->send(flight.stream(), flight, caller_waits);
}

}  // namespace amasia::devices::cuda
