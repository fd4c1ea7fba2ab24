// SPDX-License-Identifier: Apache-2.0
// From a Work to commands in a stream, and from their end to the Completion.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/backends/cuda/cuda_device.hpp"

namespace amasia::devices::cuda {
namespace {

// Pinned memory that is kept for further works. Above that the driver gets it back at once.
constexpr std::size_t kMostPinnedBlocks = 64;
constexpr Nanos kLookForFailure = base::kSecond;

}  // namespace

Stream& Device::least_busy_stream() {
  Stream* best = streams_.data();
  for (Stream& stream : streams_) {
    if (stream.works.load(std::memory_order_relaxed) <
        best->works.load(std::memory_order_relaxed)) {
      best = &stream;
    }
  }
  return *best;
}

std::unique_ptr<Flight> Device::take_flight() {
  {
    const os::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto flight = std::move(idle_.back());
      idle_.pop_back();
      return flight;
    }
  }
  auto flight = std::make_unique<Flight>();
  for (CUevent& event : flight->marks) cuda.EventCreate(&event, kEventDefault);
  return flight;
}

void Device::give_flight(std::unique_ptr<Flight> flight) {
  std::vector<Pinned> to_free;
  {
    const os::MutexLock lock(mutex_);
    for (const Pinned& pinned : flight->pinned) {
      (pinned_.size() < kMostPinnedBlocks ? pinned_ : to_free).push_back(pinned);
    }
    flight->pinned.clear();
    flight->landings.clear();
    flight->ran = flight->copied_in = flight->copied_out = false;
    flight->outcome = {};
    idle_.push_back(std::move(flight));
  }
  for (const Pinned& pinned : to_free) cuda.MemFreeHost(pinned.bytes);
}

// nullptr bytes: there is no more, and the user's own memory is to be used.
Pinned Device::take_pinned(Bytes size) {
  const Bytes rounded = rounded_size(size);
  {
    const os::MutexLock lock(mutex_);
    const auto found = std::find_if(pinned_.begin(), pinned_.end(),
                                    [&](const Pinned& one) { return one.size == rounded; });
    if (found != pinned_.end()) {
      const Pinned pinned = *found;
      pinned_.erase(found);
      return pinned;
    }
  }
  void* bytes = nullptr;
  if (cuda.MemHostAlloc(&bytes, rounded, 0) != kSuccess) return {};
  return {static_cast<char*>(bytes), rounded};
}

bool Device::note(Flight& flight, CUresult error, const char* what) {
  if (error == kSuccess) return true;
  flight.outcome = failed(Failure::kDevice, fmt::format("{} on {}: {}", what, description.name,
                                                        cuda.text_of(error)));
  return false;
}

bool Device::mark(Flight& flight, Mark which) {
  return note(flight, cuda.EventRecord(flight.marks[which], flight.stream->handle),
              "cannot mark a time");
}

bool Device::copy_in(Flight& flight, const Work& work) {
  for (const Copy& copy : work.to_device) {
    if (copy.size == 0) continue;
    const Pinned pinned = take_pinned(copy.size);
    const void* from = copy.host;
    if (pinned.bytes != nullptr) {
      flight.pinned.push_back(pinned);
      std::memcpy(pinned.bytes, copy.host, copy.size);
      from = pinned.bytes;
    }
    flight.copied_in = true;
    const CUdeviceptr to = static_cast<Memory&>(*copy.buffer).address + copy.offset;
    if (!note(flight, cuda.MemcpyHtoDAsync(to, from, copy.size, flight.stream->handle),
              "cannot copy to the device")) {
      return false;
    }
  }
  return true;
}

bool Device::copy_out(Flight& flight, const Work& work) {
  for (const Copy& copy : work.to_host) {
    if (copy.size == 0) continue;
    const Pinned pinned = take_pinned(copy.size);
    void* to = copy.host;
    if (pinned.bytes != nullptr) {
      flight.pinned.push_back(pinned);
      flight.landings.push_back({copy.host, pinned.bytes, copy.size});
      to = pinned.bytes;
    }
    flight.copied_out = true;
    const CUdeviceptr from = static_cast<Memory&>(*copy.buffer).address + copy.offset;
    if (!note(flight, cuda.MemcpyDtoHAsync(to, from, copy.size, flight.stream->handle),
              "cannot copy from the device")) {
      return false;
    }
  }
  return true;
}

namespace {

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

bool Device::launch(Flight& flight, const Work& work) {
  if (work.kernel == nullptr) return true;
  const auto& kernel = static_cast<const Kernel&>(*work.kernel);
  flight.kernel = kernel.name;
  const auto shape = shape_of(work, kernel.most_threads, description.max_work_sizes);
  if (!shape) {
    flight.outcome = failed(Failure::kWorkSize, fmt::format("the kernel '{}' cannot be launched "
                                                            "with {}", kernel.name,
                                                            shape.error().message));
    return false;
  }
  Parameters parameters;
  if (!pack(kernel, work.arguments, &parameters, &flight.outcome)) return false;
  if (!mark(flight, kRunBegan)) return false;
  const Shape& s = shape.value();
  const CUresult error = cuda.LaunchKernel(
      kernel.function, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
      static_cast<unsigned>(parameters.shared_bytes()), flight.stream->handle,
      parameters.pointers(), nullptr);
  if (error != kSuccess) {
    const bool size = error == kInvalidValue || error == kLaunchOutOfResources;
    flight.outcome = failed(size ? Failure::kWorkSize : Failure::kDevice,
                            fmt::format("the kernel '{}' cannot be launched: {}", kernel.name,
                                        cuda.text_of(error)));
    return false;
  }
  flight.ran = true;
  return mark(flight, kRunEnded);
}

std::unique_ptr<Flight> Device::take_off(Completion& completion, int stream) {
  auto flight = take_flight();
  flight->device = this;
  flight->completion = &completion;
  flight->stream = stream == kAnyStream ? &least_busy_stream()
                                        : &streams_[static_cast<std::size_t>(stream)];
  flight->stream->works.fetch_add(1, std::memory_order_relaxed);
  return flight;
}

void Device::submit(const Work& work, Completion& completion, int stream) {
  const InContext in(*this);
  auto flight = take_off(completion, stream);
  static_cast<void>(mark(*flight, kBegan) && copy_in(*flight, work) && launch(*flight, work) &&
                    copy_out(*flight, work) && mark(*flight, kEnded));
  send(std::move(flight));
}

void Device::copy_here(CUdeviceptr to, const Device& from_device, CUdeviceptr from, Bytes size,
                       Completion& completion, int stream) {
  const InContext in(*this);
  auto flight = take_off(completion, stream);
  const CUstream commands = flight->stream->handle;
  const auto copy = [&] {
    return &from_device == this ? cuda.MemcpyDtoDAsync(to, from, size, commands)
                                : cuda.MemcpyPeerAsync(to, context, from, from_device.context,
                                                       size, commands);
  };
  static_cast<void>(mark(*flight, kBegan) &&
                    note(*flight, copy(), "cannot copy between memories of GPUs") &&
                    mark(*flight, kEnded));
  send(std::move(flight));
}

void Device::send(std::unique_ptr<Flight> flight) {
  Flight* const in_the_air = flight.get();
  bool wakes = false;
  {
    const os::MutexLock lock(mutex_);
    airborne_.push_back(std::move(flight));
    wakes = std::exchange(sleeps_, false);
    if (wakes) signal_.fetch_add(1, std::memory_order_release);
  }
  if (wakes) os::futex_wake(signal_, 1);
  // Also after a failure: what was enqueued before it may still be under way.
  if (cuda.LaunchHostFunc(in_the_air->stream->handle, &Device::on_end, in_the_air) != kSuccess) {
    cuda.StreamSynchronize(in_the_air->stream->handle);
    on_end(in_the_air);
  }
}

void Device::on_end(void* argument) {
  auto* const flight = static_cast<Flight*>(argument);
  Device& device = *flight->device;
  {
    const os::MutexLock lock(device.mutex_);
    flight->landed_at = os::monotonic_now();
    device.landed_.push_back(flight);
    device.signal_.fetch_add(1, std::memory_order_release);
  }
  os::futex_wake(device.signal_, 1);
}

// A device that has failed tells so to whoever asks, and calls no host function any more.
void Device::look_for_failure() {
  for (const auto& flight : airborne_) {
    const CUresult state = cuda.StreamQuery(flight->stream->handle);
    if (state == kSuccess || state == kNotReady) continue;
    if (std::find(landed_.begin(), landed_.end(), flight.get()) == landed_.end()) {
      flight->landed_at = os::monotonic_now();
      landed_.push_back(flight.get());
    }
  }
}

// Sleeps until works have ended; empty: the device is to end, and none is under way.
// Without works it sleeps as if there were some at first, so that those that follow soon need not
// wake it; then until it is told of one: a failed device calls back for none, not for the first.
std::vector<std::unique_ptr<Flight>> Device::wait_for_landed() {
  for (bool idle = false;;) {
    std::uint32_t seen = 0;
    bool without_end = false;
    {
      const os::MutexLock lock(mutex_);
      sleeps_ = false;
      if (landed_.empty() && !airborne_.empty()) look_for_failure();
      std::vector<std::unique_ptr<Flight>> ended;
      for (Flight* const flight : landed_) {
        const auto found =
            std::find_if(airborne_.begin(), airborne_.end(),
                         [&](const auto& one) { return one.get() == flight; });
        if (found == airborne_.end()) continue;
        ended.push_back(std::move(*found));
        airborne_.erase(found);
      }
      landed_.clear();
      if (!ended.empty() || (ending_ && airborne_.empty())) return ended;
      seen = signal_.load(std::memory_order_acquire);
      without_end = sleeps_ = idle && airborne_.empty();
      idle = airborne_.empty();
    }
    os::futex_wait(signal_, seen, without_end ? Nanos{-1} : kLookForFailure);
  }
}

void Device::serve(void* argument) {
  Device& device = *static_cast<Device*>(argument);
  os::set_thread_name("amasia-cuda");
  const InContext in(device);
  for (;;) {
    auto landed = device.wait_for_landed();
    if (landed.empty()) return;
    for (auto& flight : landed) device.land(std::move(flight));
  }
}

void Device::land(std::unique_ptr<Flight> flight) {
  Outcome outcome = std::move(flight->outcome);
  if (outcome.failure == Failure::kNone) {
    const CUresult error = cuda.EventQuery(flight->marks[kEnded]);
    if (error != kSuccess) {
      const std::string what =
          flight->ran ? "the kernel '" + flight->kernel + "' failed" : std::string("a copy failed");
      note(*flight, error, what.c_str());
      outcome = std::move(flight->outcome);
    }
  }
  if (outcome.failure == Failure::kNone) {
    for (const auto& landing : flight->landings) {
      std::memcpy(landing.host, landing.pinned, landing.size);
    }
    // The driver's times are differences; the end is when the host function ran.
    const auto before_end = [&](Mark which) {
      float ms = 0;
      cuda.EventElapsedTime(&ms, flight->marks[which], flight->marks[kEnded]);
      return flight->landed_at - static_cast<Nanos>(static_cast<double>(ms) * 1e6);
    };
    if (flight->copied_in) outcome.copy_began = before_end(kBegan);
    if (flight->ran) outcome.run_began = before_end(kRunBegan);
    if (flight->ran) outcome.run_ended = before_end(kRunEnded);
    if (flight->copied_out) outcome.copy_ended = flight->landed_at;
  }
  // Nothing of the device may be touched once the client knows, but by this thread, which the
  // device's end waits for.
  Completion& completion = *flight->completion;
  flight->stream->works.fetch_sub(1, std::memory_order_relaxed);
  give_flight(std::move(flight));
  completion.finished(std::move(outcome));
}

}  // namespace amasia::devices::cuda
